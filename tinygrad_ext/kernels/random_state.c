/* The state of a stream as bytes, in the layout of PyTorch's. See random.h. */
#include "random.h"
#include <string.h>

typedef struct {
    uint64_t seed;
    int32_t left, seeded;              /* words left before a new block, plus 1 */
    uint64_t next, words[TGX_RANDOM_WORDS];
    double unused_x, spare_normal, unused_rho;
    int32_t has_spare, pad;
    float float_spare;                 /* never set by a CPU draw */
    uint8_t has_float_spare, tail[3];
} saved_state;

_Static_assert(sizeof(saved_state) == TGX_RANDOM_STATE_BYTES, "layout of PyTorch's generator state");

void tgx_random_save(const tgx_stream *s, void *bytes)
{
    saved_state saved = {.seed = s->seed, .seeded = 1, .next = s->position, .spare_normal = s->spare_normal,
                         .has_spare = s->has_spare};
    saved.left = s->position == 0 ? 1 : (int32_t)(TGX_RANDOM_WORDS + 1 - s->position);
    for (int i = 0; i < TGX_RANDOM_WORDS; i++) saved.words[i] = s->words[i];
    memcpy(bytes, &saved, sizeof saved);
}

int tgx_random_load(tgx_stream *s, const void *bytes)
{
    saved_state saved;
    memcpy(&saved, bytes, sizeof saved);
    int fresh = saved.next == 0 && saved.left == 1;
    if (saved.seeded != 1 || saved.next > TGX_RANDOM_WORDS) return 0;
    if (!fresh && (saved.next == 0 || saved.left != (int32_t)(TGX_RANDOM_WORDS + 1 - saved.next))) return 0;
    s->seed = saved.seed;
    s->position = (uint32_t)saved.next;
    s->has_spare = saved.has_spare != 0;
    s->spare_normal = saved.spare_normal;
    for (int i = 0; i < TGX_RANDOM_WORDS; i++) s->words[i] = (uint32_t)saved.words[i];
    return 1;
}
