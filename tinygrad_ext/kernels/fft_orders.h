/* Orders of shuffles of two vectors of n numbers: what brings the parts of pairs apart, and together again. NEAR: in an order in which
 * nothing leaves its 16 bytes of a vector; BACK: the same with the last pair first. F and D: of floats and doubles. */
#ifndef TGX_FFT_ORDERS_H
#define TGX_FFT_ORDERS_H
#define EVENS_F4 0, 2, 4, 6
#define ODDS_F4 1, 3, 5, 7
#define LOW_F4 0, 4, 1, 5
#define HIGH_F4 2, 6, 3, 7
#define EVENS_NEAR_F4 0, 2, 4, 6
#define ODDS_NEAR_F4 1, 3, 5, 7
#define LOW_NEAR_F4 0, 4, 1, 5
#define HIGH_NEAR_F4 2, 6, 3, 7
#define EVENS_BACK_F4 6, 4, 2, 0
#define ODDS_BACK_F4 7, 5, 3, 1
#define LOW_BACK_F4 3, 7, 2, 6
#define HIGH_BACK_F4 1, 5, 0, 4
#define EVENS_F8 0, 2, 4, 6, 8, 10, 12, 14
#define ODDS_F8 1, 3, 5, 7, 9, 11, 13, 15
#define LOW_F8 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_F8 4, 12, 5, 13, 6, 14, 7, 15
#define EVENS_NEAR_F8 0, 2, 8, 10, 4, 6, 12, 14
#define ODDS_NEAR_F8 1, 3, 9, 11, 5, 7, 13, 15
#define LOW_NEAR_F8 0, 8, 1, 9, 4, 12, 5, 13
#define HIGH_NEAR_F8 2, 10, 3, 11, 6, 14, 7, 15
#define EVENS_BACK_F8 14, 12, 6, 4, 10, 8, 2, 0
#define ODDS_BACK_F8 15, 13, 7, 5, 11, 9, 3, 1
#define LOW_BACK_F8 7, 15, 6, 14, 3, 11, 2, 10
#define HIGH_BACK_F8 5, 13, 4, 12, 1, 9, 0, 8
#define EVENS_F16 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODDS_F16 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define LOW_F16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_F16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define EVENS_NEAR_F16 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30
#define ODDS_NEAR_F16 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31
#define LOW_NEAR_F16 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define HIGH_NEAR_F16 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define EVENS_BACK_F16 30, 28, 14, 12, 26, 24, 10, 8, 22, 20, 6, 4, 18, 16, 2, 0
#define ODDS_BACK_F16 31, 29, 15, 13, 27, 25, 11, 9, 23, 21, 7, 5, 19, 17, 3, 1
#define LOW_BACK_F16 15, 31, 14, 30, 11, 27, 10, 26, 7, 23, 6, 22, 3, 19, 2, 18
#define HIGH_BACK_F16 13, 29, 12, 28, 9, 25, 8, 24, 5, 21, 4, 20, 1, 17, 0, 16
#define EVENS_D2 0, 2
#define ODDS_D2 1, 3
#define LOW_D2 0, 2
#define HIGH_D2 1, 3
#define EVENS_NEAR_D2 0, 2
#define ODDS_NEAR_D2 1, 3
#define LOW_NEAR_D2 0, 2
#define HIGH_NEAR_D2 1, 3
#define EVENS_BACK_D2 2, 0
#define ODDS_BACK_D2 3, 1
#define LOW_BACK_D2 1, 3
#define HIGH_BACK_D2 0, 2
#define EVENS_D4 0, 2, 4, 6
#define ODDS_D4 1, 3, 5, 7
#define LOW_D4 0, 4, 1, 5
#define HIGH_D4 2, 6, 3, 7
#define EVENS_NEAR_D4 0, 4, 2, 6
#define ODDS_NEAR_D4 1, 5, 3, 7
#define LOW_NEAR_D4 0, 4, 2, 6
#define HIGH_NEAR_D4 1, 5, 3, 7
#define EVENS_BACK_D4 6, 2, 4, 0
#define ODDS_BACK_D4 7, 3, 5, 1
#define LOW_BACK_D4 3, 7, 1, 5
#define HIGH_BACK_D4 2, 6, 0, 4
#define EVENS_D8 0, 2, 4, 6, 8, 10, 12, 14
#define ODDS_D8 1, 3, 5, 7, 9, 11, 13, 15
#define LOW_D8 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_D8 4, 12, 5, 13, 6, 14, 7, 15
#define EVENS_NEAR_D8 0, 8, 2, 10, 4, 12, 6, 14
#define ODDS_NEAR_D8 1, 9, 3, 11, 5, 13, 7, 15
#define LOW_NEAR_D8 0, 8, 2, 10, 4, 12, 6, 14
#define HIGH_NEAR_D8 1, 9, 3, 11, 5, 13, 7, 15
#define EVENS_BACK_D8 14, 6, 12, 4, 10, 2, 8, 0
#define ODDS_BACK_D8 15, 7, 13, 5, 11, 3, 9, 1
#define LOW_BACK_D8 7, 15, 5, 13, 3, 11, 1, 9
#define HIGH_BACK_D8 6, 14, 4, 12, 2, 10, 0, 8
#endif
