/* The loops of lanes.h for real and complex numbers, compiled for each instruction set with vectors as wide as its registers. */
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

/* Of the numbers that NAME stands for. */
#define V NAME(vector)
#define M NAME(mask)
#define E NAME(element)
#define LANES NAME(lanes)
#define CHOOSE NAME(choose)
#define PICK NAME(pick)
#define LESS NAME(less)
#define TIMES NAME(times)
#define CONJUGATE NAME(conjugate)

#define T float
#define INT int32_t
#define PARTS 1
#define NAME(x) PASTED(x, _f)
#define EPSILON FLT_EPSILON
#define MOST FLT_MAX
#include "lanes_loops.h"
#define T float
#define INT int32_t
#define PARTS 2
#define NAME(x) PASTED(x, _c)
#define EPSILON FLT_EPSILON
#define MOST FLT_MAX
#include "lanes_loops.h"
#define T double
#define INT int64_t
#define PARTS 1
#define NAME(x) PASTED(x, _d)
#define EPSILON DBL_EPSILON
#define MOST DBL_MAX
#include "lanes_loops.h"
#define T double
#define INT int64_t
#define PARTS 2
#define NAME(x) PASTED(x, _z)
#define EPSILON DBL_EPSILON
#define MOST DBL_MAX
#include "lanes_loops.h"

#define OPS(x)                                                                                                                       \
    {x(lanes), x(take), x(give), x(lu), x(solve), x(triangle), x(identity), x(cholesky), x(reflectors), x(product), x(above), x(least), \
     x(eigenvalues), x(singular)}
#define OF_F(x) PASTED(x, _f)
#define OF_D(x) PASTED(x, _d)
#define OF_C(x) PASTED(x, _c)
#define OF_Z(x) PASTED(x, _z)
const tgx_lane_table ISA(tgx_lanes) = {OPS(OF_F), OPS(OF_D), OPS(OF_C), OPS(OF_Z)};
