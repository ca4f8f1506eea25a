/* The loops of lanes.h for float and double, compiled for each instruction set with vectors as wide as its registers. */
#include <float.h>
#include "lanes.h"

#if defined(__AVX512F__)
enum { LANE_BYTES = 64 };
#elif defined(__AVX2__)
enum { LANE_BYTES = 32 };
#else
enum { LANE_BYTES = 16 };
#endif
#define PASTE(a, b) a##b
#define PASTED(a, b) PASTE(a, b)

#define T float
#define INT int32_t
#define NAME(x) PASTED(x, _f)
#define EPSILON FLT_EPSILON
#define MOST FLT_MAX
#include "lanes_elements.h"
#include "lanes_factors.h"
#include "lanes_orthogonal.h"
#include "lanes_values.h"
#undef T
#undef INT
#undef NAME
#undef EPSILON
#undef MOST
#define T double
#define INT int64_t
#define NAME(x) PASTED(x, _d)
#define EPSILON DBL_EPSILON
#define MOST DBL_MAX
#include "lanes_elements.h"
#include "lanes_factors.h"
#include "lanes_orthogonal.h"
#include "lanes_values.h"

#define OPS(x) {x(lanes), x(take), x(give), x(lu), x(solve), x(triangle), x(identity), x(cholesky), x(reflectors), x(product), x(above), x(eigenvalues), x(singular)}
#define OF_F(x) PASTED(x, _f)
#define OF_D(x) PASTED(x, _d)
const tgx_lane_table ISA(tgx_lanes) = {OPS(OF_F), OPS(OF_D)};
