/* depth.h - geometry from one photo: MoGe-2, metric, and MoGe-1, whose unit is its own. See theo.h for the rules that hold
 * everywhere, docs/models/moge2.md and moge1.md for what is computed. */
#ifndef THEO_DEPTH_H
#define THEO_DEPTH_H

#include <theo/theo.h>

#ifdef __cplusplus
extern "C" {
#endif

/* native: the photo as it is. pad, stretch: on a canvas of 1920x1080 (always 1800 tokens), with a border or drawn out; stretching
 * distorts the geometry of photos that are not 16:9. */
typedef enum theo_depth_fit { THEO_DEPTH_NATIVE = 0, THEO_DEPTH_PAD, THEO_DEPTH_STRETCH } theo_depth_fit;
typedef enum theo_invalid { THEO_INVALID_INF = 0, THEO_INVALID_NAN, THEO_INVALID_ZERO } theo_invalid;

/* What the frames of a video share: one field of view and one metric scale, so that depth does not jump from frame to frame.
 * first: those of the first good frame. ema: running means, 0.9 of the old and 0.1 of the new in the logarithms of the scale and
 * of tan(fov_x / 2). The shift is solved again at the shared field of view. Frames go through calls with the same sequence one
 * after the other, in order; a frame that fails, or has too few valid pixels to say anything, changes nothing; one of another
 * aspect than the first is THEO_ARGUMENT. A field of view or metric scale that the options give wins. */
typedef enum theo_sequence_mode { THEO_SEQUENCE_FIRST = 1, THEO_SEQUENCE_EMA } theo_sequence_mode;
typedef struct theo_sequence theo_sequence;
THEO_API theo_status theo_sequence_open(theo_sequence **sequence, theo_sequence_mode mode, theo_error *err);
THEO_API void theo_sequence_close(theo_sequence *sequence);

typedef struct theo_geometry_options {
    size_t size;
    theo_depth_fit fit;      /* native */
    int tokens;              /* 1800, 16..16384: size of the network's grid, for native alone */
    double resolution_level; /* -1 = `tokens` holds; else 0..30: from the model's fewest (0) to its most (9) tokens, and on */
    double fov_x;          /* horizontal field of view of the photo in degrees, above 0 and below 180; 0 = found by the network */
    float mask_threshold;  /* 0.5, 0..1: a pixel is valid where its mask is above */
    bool force_projection; /* true: x and y from depth and intrinsics; false: the network's own */
    bool apply_mask;       /* true: invalid pixels get `invalid` and a zero normal; false: maps stay dense, but for points beyond
                            * float32, which are `invalid` in any case */
    theo_invalid invalid;  /* inf */
    float metric_scale;    /* 0 = the network's; else used instead */
    float scale;           /* 1: multiplies points and depth once more */
    bool normal;           /* true: the head is run, where the model has it (MoGe-2) */
    bool bgr;              /* the caller's three channels are B,G,R */
    theo_sequence *sequence; /* NULL: every photo by itself */
    double focal_px;         /* instead of fov_x, a focal length in pixels of the photo; 0 = not given */
    bool fov_from_exif;      /* instead of both, from image->exif_focal_35mm, where the photo has it; else by the network */
} theo_geometry_options;

THEO_API void theo_geometry_options_init(theo_geometry_options *options);

/* The camera looks along +z, x to the right, y downwards. Units are metres, or with is_metric false the network's own. */
typedef struct theo_geometry {
    int width, height;          /* of the photo, and of every map */
    const float *points;        /* [height, width, 3] */
    const float *depth;         /* [height, width], z of the points */
    const float *normal;        /* [height, width, 3], of length 1, facing the camera; NULL: not wanted, or no such head */
    const uint8_t *mask;        /* [height, width], 1 where valid: mask above its threshold, the point finite and, MoGe-2, in
                                 * front of the camera */
    float intrinsics[9];        /* 3x3, row-major, in units of width and height */
    float intrinsics_pixels[9]; /* the same in pixels, whose centres lie at +0.5 */
    float fov_x, fov_y;         /* degrees */
    float focal;                /* in half diagonals */
    float shift;                /* that was added to the network's z, before the scale */
    float metric_scale;         /* that was applied, options' scale included */
    float network_metric_scale; /* the network's own; 1 where it has none */
    bool is_metric;             /* the unit is the metre: by the network, or by options->metric_scale */
    bool network_is_metric;     /* the network has a scale of its own */
    float mask_coverage;        /* share of valid pixels */
    int token_rows, token_columns;
    bool is_degenerate; /* too few valid points for focal length and shift: both are guesses */
    const char *model;  /* name of the model */
    theo_timing timing;
} theo_geometry;

/* Photo to geometry. Photos under 8x8 pixels are THEO_ARGUMENT. NULL options: the defaults. */
THEO_API theo_status theo_geometry_run(theo_session *session, const theo_image *image, const theo_geometry_options *options,
                                       theo_geometry **geometry, theo_error *err);
THEO_API void theo_geometry_free(theo_geometry *geometry);

/* Many photos: `source` makes the next ones on a second thread, the network runs on a third, and `sink` gets, on the calling
 * thread and in order, the result (owned by the sink from then on) or the error of each, while the network works on the next one.
 * The session's progress callback is called on the network's thread, but never while the sink runs. A non-zero return of the sink
 * stops (THEO_CANCELLED). A failed image does not stop the others: the call itself then still returns THEO_OK. Results equal
 * those of theo_geometry_run bit by bit; at most four photos and two results are there at a time. */
typedef int (*theo_geometry_sink)(void *user, int index, const theo_image *image, theo_geometry *geometry, const theo_error *err);
THEO_API theo_status theo_geometry_batch(theo_session *session, int count, theo_image_source source, theo_geometry_sink sink,
                                         void *user, const theo_geometry_options *options, theo_error *err);

/* The network's own outputs, before resizing and non-linearities. rows, columns: patches of 14x14 pixels. */
typedef struct theo_geometry_maps {
    int rows, columns;
    int height, width;   /* of the maps: 16 times the patches, MoGe-1 14 times */
    const float *points; /* [3, height, width] */
    const float *normal; /* [3, height, width]; NULL without such a head */
    const float *mask;   /* [1, height, width] */
    float metric_scale;
    theo_timing timing;
} theo_geometry_maps;

/* planes [3, 14 rows, 14 columns]: the picture, less ImageNet's mean, divided by its deviation; finite; rows * columns at most
 * 65536. aspect: width / height of the picture that it was made from. */
THEO_API theo_status theo_geometry_raw(theo_session *session, const float *planes, int rows, int columns, double aspect,
                                       theo_geometry_maps **maps, theo_error *err);
THEO_API void theo_geometry_maps_free(theo_geometry_maps *maps);

/* What theo_geometry_run hands to the network for this photo and these options: the input of theo_geometry_raw. */
typedef struct theo_geometry_input {
    int rows, columns;
    double aspect;
    float *planes; /* [3, 14 rows, 14 columns]; release it with theo_buffer_free (image.h) */
} theo_geometry_input;

THEO_API theo_status theo_geometry_planes(const theo_model *model, const theo_image *image, const theo_geometry_options *options,
                                          theo_geometry_input *input, theo_error *err);

#ifdef __cplusplus
}
#endif
#endif
