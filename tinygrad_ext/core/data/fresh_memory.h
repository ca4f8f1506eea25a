/* Memory from the system and back. Large blocks lie on huge pages where the system has them: a walk through memory waits for
 * the tables of small ones, by 10 to 35 % of its time on a virtual machine, and each page costs a fault when it is fresh. */
#ifndef TGX_FRESH_MEMORY_H
#define TGX_FRESH_MEMORY_H
#include <stdint.h>
#include <stdlib.h>
#if defined(__linux__) && !TGX_EXACT
#include <sys/mman.h>
#endif

enum { TGX_HUGE_PAGE = 2 << 20 };

/* At least `size` bytes, aligned to 64; NULL where there are none. */
static void *tgx_fresh_memory(size_t size) {
    void *found = NULL;
#ifdef MADV_HUGEPAGE
    if (size >= 2 * TGX_HUGE_PAGE) {
        char *all = mmap(NULL, size + TGX_HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (all == MAP_FAILED) return NULL;
        const size_t before = -(uintptr_t)all & (TGX_HUGE_PAGE - 1);
        if (before) munmap(all, before);
        munmap(all + before + size, TGX_HUGE_PAGE - before);
        madvise(all + before, size, MADV_HUGEPAGE);     /* no more than advice */
        return all + before;
    }
#endif
    return posix_memalign(&found, 64, size) ? NULL : found;
}

static void tgx_give_back(void *memory, size_t size) {
#ifdef MADV_HUGEPAGE
    if (size >= 2 * TGX_HUGE_PAGE) {
        munmap(memory, size);
        return;
    }
#endif
    free(memory);
}
#endif
