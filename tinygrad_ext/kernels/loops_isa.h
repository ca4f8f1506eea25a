/* The generated pointwise loops, once for each instruction set. */
#include "loops.h"
#include "loops_body_gen.h"
