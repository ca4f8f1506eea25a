/* Convolution of planes, without a matrix of all windows.
 *
 *     out[o][j][i] = bias[o] + sum over c, v, u of weight[o][c][v][u] src[c][j step_y + at_y[v]][i step_x + at_x[u]]
 *
 * with zeros outside src. This one form serves the forward direction and, with roles exchanged, the gradient of the
 * input; `collect` is the gradient of the weights. A block of rows of src is first laid out once for each u (`load`),
 * so that all rows of a window lie at fixed distances and the inner loops run over whole blocks without edges. */
#ifndef TGX_CONV_H
#define TGX_CONV_H
#include <stddef.h>
#include <stdint.h>

enum {
    TGX_CONV_DIRECT_TAPS = 9,  /* of a plane that is read where it lies; more take longer than a copy */
    TGX_CONV_DIRECT_REACH = 64, /* columns from its first tap to the last */
    TGX_CONV_ACROSS_TAPS = 16, /* columns of taps of what conv_across.h computes */
    TGX_CONV_LAID_TAPS = 128   /* of what conv_laid.h computes */
};

/* Bytes of the windows of a tile, by those of a vector: half of the first cache level. Where a tile of 64 lanes a row asks for a
 * third as many in the same time, the second level is fast enough. And bytes of the weights of all outputs that share them. */
#define TGX_CONV_PANEL(vector_bytes) ((vector_bytes) == 64 ? 64 << 10 : 16 << 10)
#define TGX_CONV_WEIGHTS(vector_bytes) ((vector_bytes) == 64 ? 384 << 10 : 128 << 10)

/* Of tiles with vectors along the outputs: positions at most, and vectors. */
#define TGX_CONV_POSITIONS(vector_bytes) ((vector_bytes) == 64 ? 14 : 4)
#define TGX_CONV_VECTORS(vector_bytes) ((vector_bytes) == 64 ? 2 : 3)

typedef struct {
    ptrdiff_t channels, height, width; /* of src, whose planes are contiguous; of volumes a channel for each tap plane of each */
    ptrdiff_t own, src_channel;        /* channels of the volumes, and elements from one to the next */
    ptrdiff_t outputs, rows, cols;     /* of out */
    ptrdiff_t step_y, step_x, taps_y, taps_x;
    ptrdiff_t base_y, reach;           /* row of the topmost tap of the first window, and rows from it to the lowest */
    ptrdiff_t base_x, reach_x;         /* the same of columns */
    ptrdiff_t lanes;                   /* of the kernels */
    /* set by tgx_conv_plan: how much is computed at a time */
    ptrdiff_t block, images, depth;    /* rows of out, images, channels of src */
    ptrdiff_t weight_row;              /* 0: weights are packed; else elements between outputs of the weights as they are */
    ptrdiff_t span;                    /* columns: all, or a part of the only row */
    ptrdiff_t phases, phase_rows, plane, buffer, pad_outputs;
    int panel;                         /* whether windows are laid side by side for each tile */
    int joined;                        /* and the positions of all images of a part are one row of them */
    int plane_by_plane;                /* a group has one channel and one output: */
    int direct;                        /* apply reads it where it lies */
    int across;                        /* vectors lie along the outputs, and src is read where it lies */
    ptrdiff_t laid;                    /* or it is laid out image by image in turn: positions of a row in a tile, of each image, else 0 */
    ptrdiff_t residues, line;          /* of columns, in both of these; elements of a row of one residue in the buffer */
    /* needed by the loops, not by the plan */
    const ptrdiff_t *at_y, *at_x;      /* where the taps of the first window lie in src; may be negative */
    ptrdiff_t *offset;                 /* of tap (v, u) in a plane of the buffer; room for taps_y * taps_x */
} tgx_conv;

/* Choose the blocks for elements of `size` bytes and at most `images` images. */
void tgx_conv_plan(tgx_conv *p, ptrdiff_t size, ptrdiff_t images);
/* Where vectors along the outputs take less time, plan for these; of all images `alone` come by themselves, of volumes. */
void tgx_conv_plan_outputs(tgx_conv *p, ptrdiff_t size, ptrdiff_t images, ptrdiff_t alone);
/* Fill p->offset, once there is room for it. */
void tgx_conv_place_taps(const tgx_conv *p);

typedef struct {
    ptrdiff_t row, rows, col, cols;    /* of out */
    ptrdiff_t channel, channels;       /* of src */
    ptrdiff_t images;                  /* in buffers of p->buffer elements each; of volumes planes of out, which count as images: */
    ptrdiff_t run, skip;               /* so many of each volume, and those of the first that are not in the part */
    ptrdiff_t planes;                  /* of apply_direct, of so many groups one after the other */
    int fresh;                         /* apply starts from the bias and collect from zero, and neither reads sums */
    ptrdiff_t out_image, out_next, out_plane; /* elements between the first images of volumes, images of one, and outputs */
} tgx_conv_part;

/* Where an image of the part lies in out, which begins with the first image of its volume. */
static inline ptrdiff_t tgx_conv_out(const tgx_conv_part *part, ptrdiff_t i) {
    if (part->run == 1) return i * part->out_image;
    return (part->skip + i) / part->run * part->out_image + (part->skip + i) % part->run * part->out_next;
}

/* Taps that make the even and the odd elements of a row, and the numbers of their weights. */
typedef struct { ptrdiff_t taps[2]; const ptrdiff_t *offset[2], *number[2]; } tgx_conv_columns;

typedef struct {
    ptrdiff_t lanes; /* elements of a vector */
    /* Lay out what one image needs of the part's channels of src, which points to the first one. */
    void (*load)(const tgx_conv *p, const tgx_conv_part *part, const void *src, void *buf);
    /* Weights of p->own channels from `first` on, in the order in which `apply` reads them: of all channels they are
     * taps_y * taps_x * channels * pad_outputs elements. */
    void (*pack)(const tgx_conv *p, const void *weight, ptrdiff_t step_o, ptrdiff_t step_c, const ptrdiff_t *tap, ptrdiff_t first,
                 void *packed);
    /* A part from the buffer to out, which points to its first row; bias may be NULL. */
    void (*apply)(const tgx_conv *p, const tgx_conv_part *part, const void *buf, const void *packed, const void *bias, void *out);
    /* grad with a vector of outputs for each position, image after image, then the next vector of outputs; outputs are
     * padded with zeros to pad_outputs. */
    void (*turn)(const tgx_conv *p, const tgx_conv_part *part, const void *grad, void *turned);
    /* sums += buf . turned, for the part's channels, image after image; in sums too a vector of outputs lies together: of
     * channel 0's taps, of channel 1's, and so on, then the next vector. */
    void (*collect)(const tgx_conv *p, const tgx_conv_part *part, const void *buf, const void *turned, void *sums);
    /* The same from grad itself and for one image, for few outputs. */
    void (*collect_few)(const tgx_conv *p, const tgx_conv_part *part, const void *buf, const void *grad, void *sums);
    /* The sums of a group in the order of the weights. */
    void (*spread)(const tgx_conv *p, const void *sums, void *out);
    /* The same plane by plane: load, apply, collect_few and spread, with the sums of a tap in one vector. */
    void (*lay)(const tgx_conv *p, const tgx_conv_part *part, const void *src, void *buf);
    void (*apply_plane)(const tgx_conv *p, const tgx_conv_part *part, const void *buf, const void *weight, const void *bias, void *out);
    /* The part of some planes from src itself, which points to the first row of the first one, where p->direct. */
    void (*apply_direct)(const tgx_conv *p, const tgx_conv_part *part, const void *src, const void *weight, const void *bias, void *out);
    /* One image of any part from the part's channels where they lie, from src on, where p->across; NULL where
     * vectors have less than 64 bytes. */
    void (*apply_across)(const tgx_conv *p, const tgx_conv_part *part, const void *src, const void *packed, const void *bias, void *out);
    /* load, from where each image lies and with room for a channel of all, and apply where p->laid; NULL where vectors are short. */
    void (*load_laid)(const tgx_conv *p, const tgx_conv_part *part, const void *const *src, void *room, void *buf);
    void (*apply_laid)(const tgx_conv *p, const tgx_conv_part *part, const void *buf, const void *packed, const void *bias, void *out);
    void (*collect_plane)(const tgx_conv *p, const tgx_conv_part *part, const void *buf, const void *grad, void *sums);
    void (*settle)(const tgx_conv *p, const void *sums, void *out);
    /* `rows` rows of `width` elements, `step` apart, from a laid out plane whose windows move by one. */
    void (*apply_pair)(const tgx_conv *p, const tgx_conv_columns *pair, const void *buf, const void *weight, ptrdiff_t rows,
                       ptrdiff_t width, void *out, ptrdiff_t step);
} tgx_conv_kernels;

typedef struct { tgx_conv_kernels f32, f64; } tgx_conv_table;
const tgx_conv_table *tgx_conv_pick(void);
#endif
