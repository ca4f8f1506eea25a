/* Which loops small matrices of a batch take. See lanes.h. */
#include "lanes.h"
#include "isa.h"

enum { MOST_LANES = 16 };

const tgx_lane_ops *tgx_lanes_for(int64_t count, int64_t m, int64_t n, int dtype) {
    if (count < 1 || m < 1 || n < 1 || m > TGX_LANES_ORDER || n > TGX_LANES_ORDER) return NULL;
    const tgx_lane_table *table = TGX_PICK(tgx_lanes);
    switch (dtype) {
        case TGX_F32: return &table->f32;
        case TGX_F64: return &table->f64;
        case TGX_C64: return &table->c64;
        case TGX_C128: return &table->c128;
        default: return NULL;
    }
}

void tgx_lanes_places(const char **to, const char *data, int64_t i, int64_t count, int64_t bytes) {
    for (int64_t l = 0; l < count; l++) to[l] = data + (i + l) * bytes;
}

void tgx_lanes_take(const tgx_lane_ops *lanes, char *to, const char *data, int64_t i, int64_t count, int64_t each, int dtype) {
    const char *places[MOST_LANES];
    tgx_lanes_places(places, data, i, count, each * tgx_itemsize[dtype]);
    lanes->take(to, places, each, count);
}

void tgx_lanes_give(const tgx_lane_ops *lanes, char *data, const char *from, int64_t i, int64_t count, int64_t each, int dtype) {
    const char *places[MOST_LANES];
    tgx_lanes_places(places, data, i, count, each * tgx_itemsize[dtype]);
    lanes->give((char *const *)places, from, each, count);
}
