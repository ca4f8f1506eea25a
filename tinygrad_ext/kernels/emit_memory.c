/* Memory for code, see emit.h: written first, then made executable and never writable again. The code of a plan, all its
 * groups together, lies on pages of its own.
 *
 * Rejected: pages shared by several plans (to add code they would have to be writable, or gone for a moment, while another
 * thread runs what is there); the same memory mapped twice, once to write and once to run (a child of fork would write into
 * its parent's code); pages that are writable and executable at once. */
#include "emit.h"
#include "isa.h"
#include <stdatomic.h>
#if TGX_EMITS
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 1 << 26 };               /* bytes in all plans: each is a mapping of its own, of which there are 65,000 */

static atomic_size_t held;

static size_t paged(size_t n) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (n + page - 1) / page * page;
}

void *tgx_code_make(const void *bytes, size_t n) {
    const size_t size = paged(n);
    if (atomic_fetch_add(&held, size) + size <= MOST) {
        void *made = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (made != MAP_FAILED) {
            memcpy(made, bytes, n);
            if (!mprotect(made, size, PROT_READ | PROT_EXEC)) return made;
            munmap(made, size);
        }
    }
    atomic_fetch_sub(&held, size);
    return NULL;
}

void tgx_code_free(void *code, size_t n) {
    if (!code) return;
    munmap(code, paged(n));
    atomic_fetch_sub(&held, paged(n));
}

size_t tgx_code_held(void) { return atomic_load(&held); }

int tgx_emit_level(void) {
    void *probe = tgx_cpu_level() ? tgx_code_make("\xC3", 1) : NULL;
    tgx_code_free(probe, 1);
    return probe ? tgx_cpu_level() : 0;
}
#else
int tgx_emit_level(void) { return 0; }
void *tgx_code_make(const void *bytes, size_t n) { return NULL; }
void tgx_code_free(void *code, size_t n) { }
size_t tgx_code_held(void) { return 0; }
#endif
