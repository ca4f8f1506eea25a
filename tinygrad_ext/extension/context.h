/* One call of an extension's code: whose it is, its error, and memory that lives as long.
 *
 * It stands on the stack of whoever calls, and is not cleared: a small op has no time for a kilobyte of zeros. An error of a
 * function of the table is the interpreter's pending one; what the extension says itself is kept here, where it can be
 * written without the lock. */
#ifndef TGX_CONTEXT_H
#define TGX_CONTEXT_H
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "public.h"

typedef struct tgx_block { struct tgx_block *next; } tgx_block;

struct tgx_ctx {
    PyObject *who;                  /* borrowed: the name of the op or extension, for messages */
    PyObject *target;               /* borrowed: who registers, while init runs */
    PyObject *keep;                 /* list of what must live as long as the call, or NULL */
    const unsigned char *needed;    /* of the edges, while a backward runs */
    tgx_block *blocks;
    uint32_t used;                  /* bytes of words */
    uint8_t failed, unlocked;
    char kind[32];
    char text[960];
    _Alignas(16) char words[512];
};

static inline void tgx_open(struct tgx_ctx *c, PyObject *who) {
    c->who = who;
    c->target = c->keep = NULL;
    c->needed = NULL;
    c->blocks = NULL;
    c->used = 0;
    c->failed = c->unlocked = 0;
}

/* Memory as long as the call; NULL: there is none. */
static inline void *tgx_room(struct tgx_ctx *c, size_t bytes) {
    tgx_block *b;
    bytes = (bytes + 15) & ~(size_t)15;
    if (bytes <= sizeof(c->words) - c->used) {
        void *found = c->words + c->used;
        c->used += (uint32_t)bytes;
        return found;
    }
    if (bytes > (size_t)1 << 46 || (b = (tgx_block *)malloc(bytes + 16)) == NULL) return NULL;
    b->next = c->blocks;
    c->blocks = b;
    return (char *)b + 16;
}

static inline void tgx_close(struct tgx_ctx *c) {
    while (c->blocks != NULL) {
        tgx_block *b = c->blocks;
        c->blocks = b->next;
        free(b);
    }
    Py_CLEAR(c->keep);
}

static int tgx_say(struct tgx_ctx *c, const char *kind, const char *format, va_list rest) {
    if (c == NULL) return -1;
    snprintf(c->kind, sizeof(c->kind), "%s", kind == NULL ? "RuntimeError" : kind);
    if (format == NULL) c->text[0] = 0;
    else vsnprintf(c->text, sizeof(c->text), format, rest);
    c->failed = 1;
    return -1;
}

static int tgx_api_fail(struct tgx_ctx *c, const char *kind, const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    tgx_say(c, kind, format, rest);
    va_end(rest);
    return -1;
}

static int tgx_api_fail_text(struct tgx_ctx *c, const char *kind, const char *text) {
    return tgx_api_fail(c, kind, "%s", text == NULL ? "" : text);
}
#endif
