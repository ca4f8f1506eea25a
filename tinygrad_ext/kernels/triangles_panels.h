/* Panels of three widths, for numbers T, and the loop over them. Included by triangles_isa.h. */
#define PANEL 16
#define BYTES 16
#define NAME(x) OF(x##_16)
#include "triangles_panel.h"
#define PANEL 32
#define BYTES HALF
#define NAME(x) OF(x##_32)
#include "triangles_panel.h"
#define PANEL 64
#define BYTES WHOLE
#define NAME(x) OF(x##_64)
#include "triangles_panel.h"

static void OF(sides)(const tgx_triangle *t) {
    const ptrdiff_t most = TGX_PANEL_BYTES / (ptrdiff_t)sizeof(T);
    for (ptrdiff_t c = 0, count; c < t->k; c += count) {
        T *b = (T *)t->b + c;
        count = t->k - c < most ? t->k - c : most;
        if (count > most / 2) OF(panel_64)(t, b, count);
        else if (count > most / 4) OF(panel_32)(t, b, count);
        else OF(panel_16)(t, b, count);
    }
}
