/* Attention of bfloat16 and its derivative by products of bfloat16, where the processor has these. See attention_bf16.c. */
#ifndef TGX_ATTENTION_BF16_H
#define TGX_ATTENTION_BF16_H
#include "attention_job.h"

/* Whether heads of these sizes gain by it; the others are widened. */
int tgx_attention_bf16_gains(const tgx_attention *j);
/* Rows of a block, and the room of a share of the work. */
void tgx_attention_bf16_plan(tgx_attention *j);
/* Items [lo, hi) in the room of a share: blocks of rows; of the derivative heads. */
void tgx_attention_bf16_items(const tgx_attention *j, char *room, int64_t lo, int64_t hi);
void tgx_attention_bf16_back_items(const tgx_attention *j, char *room, int64_t lo, int64_t hi);
#endif
