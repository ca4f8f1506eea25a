/* All loops of one kind of numbers; what lanes_isa.h defined for it ends here. */
#include "lanes_elements.h"
#include "lanes_factors.h"
#include "lanes_orthogonal.h"
#include "lanes_values.h"
#undef OF
#undef T
#undef INT
#undef PARTS
#undef NAME
#undef EPSILON
#undef MOST
