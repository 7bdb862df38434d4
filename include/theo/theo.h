/* theo.h - measure geometry in photographs.
 *
 *     theo_error err;
 *     theo_model *model = NULL;
 *     theo_session *session = NULL;
 *     theo_image *photo = NULL;
 *     theo_keypoints *points = NULL;
 *
 *     if (theo_model_open(&model, "superpoint-open", NULL, &err) ||
 *         theo_session_open(&session, model, NULL, &err) ||
 *         theo_image_load(&photo, "photo.jpg", NULL, &err) ||      // <theo/image.h>
 *         theo_detect(session, photo, NULL, &points, &err))
 *         fprintf(stderr, "%s\n", err.message);
 *     else
 *         printf("%d keypoints\n", points->count);
 *
 *     theo_keypoints_free(points);
 *     theo_image_free(photo);
 *     theo_session_close(session);
 *     theo_model_close(model);
 *
 * Rules that hold everywhere
 *  - Every function that can fail returns a theo_status and fills the caller's theo_error (which may be NULL). On failure the
 *    out-pointer is NULL and nothing leaks; the objects passed in stay usable.
 *  - Option structs start with `size`, are filled with the defaults by their init function, and are literal after that. A NULL
 *    options pointer means the defaults. A shorter struct of an older header is taken, with the defaults for the rest; a longer
 *    one is THEO_ARGUMENT. Structs that the library fills (by an init function, or as a result in the caller's memory) grow only
 *    when the soname changes.
 *  - A model is immutable and reference counted: sessions hold it, so it may be closed before them. Any number of sessions, in
 *    any number of threads, may use one model.
 *  - A session is one line of work. One call at a time: a second one at the same moment returns THEO_BUSY.
 *  - Results belong to the caller until the matching theo_*_free; they stay valid whatever happens to session and model.
 *    A session recycles the buffers of freed results, so that a loop that frees its results allocates nothing. A result may
 *    be freed from any thread, also after its session was closed.
 *  - Coordinates are pixels, x to the right, y downwards, always in the order (x, y); integer coordinates are pixel centres
 *    unless an option says otherwise. Shapes in comments are row-major.
 *  - The library never prints, never exits and never touches signals.
 */
#ifndef THEO_THEO_H
#define THEO_THEO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(THEO_STATIC) || !defined(__GNUC__)
#define THEO_API
#else
#define THEO_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- version */

#define THEO_VERSION_MAJOR 0
#define THEO_VERSION_MINOR 1
#define THEO_VERSION_PATCH 0

/* "0.1.0": the version of the library that runs, to be compared with the macros above. Static storage. */
THEO_API const char *theo_version(void);

/* ---------------------------------------------------------------- errors */

typedef enum theo_status {
    THEO_OK = 0,
    THEO_ARGUMENT,    /* an argument or option is out of its range, or two contradict each other */
    THEO_IO,          /* a file cannot be opened, read or written */
    THEO_CONTAINER,   /* the outer file format is broken: zip, JPEG, PNG, safetensors header, npy */
    THEO_PICKLE,      /* a pickle stream that is malformed */
    THEO_SECURITY,    /* a pickle that asks for something not on the allow-list */
    THEO_BOUNDS,      /* an offset, length, stride or count points outside of its container, or over a limit */
    THEO_UNSUPPORTED, /* valid, but not something this build or version can do */
    THEO_CHECKSUM,    /* stored and computed CRC differ */
    THEO_STRUCTURE,   /* the file is sound but is not a checkpoint of a known network */
    THEO_SHAPE,       /* a tensor has another shape or type than the network needs */
    THEO_MISSING,     /* a file, tensor or model that is needed is not there */
    THEO_MEMORY,      /* out of memory */
    THEO_BUSY,        /* the session is in use by another thread */
    THEO_CANCELLED,   /* the progress callback asked to stop */
    THEO_INTERNAL     /* a bug in the library: please report it */
} theo_status;

/* Caller-owned; filled by every function that fails. All strings are UTF-8 and terminated. */
typedef struct theo_error {
    theo_status status;
    char file[512];     /* the file concerned, or "" */
    char place[160];    /* where in it: tensor name, chunk, byte offset, option name; or "" */
    char message[1024]; /* one sentence that says what is wrong and what is allowed; contains file and place */
} theo_error;

/* A short name such as "argument" or "checksum". Static storage; "unknown" for other values. */
THEO_API const char *theo_status_name(theo_status status);

/* ---------------------------------------------------------------- log, progress */

typedef enum theo_log_level { THEO_LOG_WARNING = 1, THEO_LOG_INFO, THEO_LOG_DEBUG } theo_log_level;

/* Called on the thread that does the work. `message` is valid during the call only. */
typedef void (*theo_log_fn)(void *user, theo_log_level level, const char *message);

/* Called on the calling thread between two operations; `done` rises from 0 to 1. Non-zero cancels the call (THEO_CANCELLED). */
typedef int (*theo_progress_fn)(void *user, double done);

/* ---------------------------------------------------------------- thread pools */

typedef struct theo_pool theo_pool;

/* Number of threads that `threads = 0` stands for: the cores allowed by CPU affinity and by the cgroup's quota, at least 1. */
THEO_API int theo_default_threads(void);

/* A pool for several models. threads: 0 = theo_default_threads(), else 1..256; the calling thread is one of them. Parallel
 * regions of concurrent sessions take turns. Counted like a model: models hold it. */
THEO_API theo_status theo_pool_open(theo_pool **pool, int threads, theo_error *err);
THEO_API void theo_pool_close(theo_pool *pool);

/* ---------------------------------------------------------------- images (made by <theo/image.h>, or by the caller) */

typedef enum theo_pixel { THEO_U8 = 0, THEO_U16 = 1, THEO_F32 = 2 } theo_pixel;

/* Interleaved pixels, channels in the order gray | gray,alpha | R,G,B | R,G,B,A. A caller may fill one over its own memory
 * (zero the whole struct first); F32 samples are in [0, 1]. Pixels and rows start at multiples of a sample's size. The library
 * reads `pixels` during a call only. */
typedef struct theo_image {
    int width, height, channels; /* channels 1..4 */
    theo_pixel type;
    size_t row_bytes; /* distance of two rows; 0 = tightly packed */
    const void *pixels;
    int exif_orientation; /* 1..8 as the file says, 0 = none given */
    int exif_focal_35mm;  /* FocalLengthIn35mmFilm as the file says, 0 = none given */
    bool orientation_applied;
    bool truncated;     /* the file ended early; the missing part is gray */
    const char *format; /* "jpeg", "png", or NULL for caller memory. Static storage */
    void *owner;        /* NULL for caller memory */
} theo_image;

/* Frees an image made by the library. NULL is allowed; an image over caller memory is left alone. */
THEO_API void theo_image_free(theo_image *image);

/* ---------------------------------------------------------------- models */

typedef struct theo_model theo_model;

typedef enum theo_task { THEO_TASK_KEYPOINTS = 1, THEO_TASK_DEPTH, THEO_TASK_PAIR } theo_task;

typedef struct theo_model_options {
    size_t size;           /* sizeof(theo_model_options) */
    int threads;           /* 0 = theo_default_threads(); ignored when `pool` is given */
    theo_pool *pool;       /* NULL = a pool of the model's own */
    const char *precision; /* "fp32" */
    double bn_eps;         /* batch-norm epsilon; 0 = by the kind of file (1e-3 rpautrat, 1e-5 MagicPoint) */
    bool verify_checksums; /* true: CRC of every entry of a zip checkpoint */
    theo_log_fn log;       /* may be NULL */
    void *log_user;
} theo_model_options;

THEO_API void theo_model_options_init(theo_model_options *options);

/* Opens a model by catalogue name ("superpoint-open"), by file (.safetensors, .pt, .pth) or by directory (config.json and
 * model.safetensors). An argument that has a '/', ends in one of these extensions or exists is a path. Names are looked up in
 * THEO_MODELS (colon-separated folders), the installed model folder, then the Hugging Face cache. What network a file holds is
 * told from its tensors. All missing and mis-shaped tensors are reported together.
 * Errors: io, container, pickle, security, bounds, checksum, structure, shape, missing, unsupported, memory, argument. */
THEO_API theo_status theo_model_open(theo_model **model, const char *name_or_path, const theo_model_options *options,
                                     theo_error *err);

/* Gives up the caller's hold; the memory goes when the last session is closed. NULL is allowed. */
THEO_API void theo_model_close(theo_model *model);

/* Facts of an open model. Strings live as long as the model. */
typedef struct theo_model_info {
    const char *name; /* catalogue name if the file is a known one, else the file's stem */
    const char *kind; /* "superpoint", "superpoint-bn", "magicpoint", "moge-2", "dust3r" */
    theo_task task;
    const char *path;    /* the file that was read */
    const char *source;  /* "safetensors", "torch-zip", "torch-legacy" */
    const char *licence; /* one line; the full notice stands in docs/models/ */
    const char *precision;
    const char *isa;         /* CPU level whose kernels are in use: "c", "avx2", "avx512", "neon" */
    const char *config_json; /* channel plan and options as a JSON object */
    int threads;
    int64_t parameters;
    int64_t file_bytes;
    size_t weight_bytes;           /* packed, in memory */
    int descriptor_dim;            /* 0: no descriptor head */
    int input_width, input_height; /* what it is usually given, as theo_session_prepare takes it */
    double load_ms;                /* time theo_model_open took */
} theo_model_info;

THEO_API void theo_model_get_info(const theo_model *model, theo_model_info *info);

/* An entry of the catalogue of known models. Static storage. */
typedef struct theo_catalog_entry {
    const char *name, *repo, *revision, *file, *licence;
    theo_task task;
    int64_t bytes;
    bool is_supported; /* by this version of the library */
} theo_catalog_entry;

/* Entry `index` of the catalogue, or NULL past its end. */
THEO_API const theo_catalog_entry *theo_catalog(int index);

/* Path of a catalogue name into path[capacity]. THEO_MISSING tells how to get it, its size and its licence. */
THEO_API theo_status theo_model_find(const char *name, char *path, size_t capacity, theo_error *err);

/* ---------------------------------------------------------------- sessions */

typedef struct theo_session theo_session;

typedef struct theo_session_options {
    size_t size;
    int64_t tile_pixels;       /* larger network inputs run in tiles of about this many pixels, bit-equal to the untiled run;
                                  0 = never tile. Default 1 << 21 */
    theo_progress_fn progress; /* may be NULL */
    void *progress_user;
} theo_session_options;

THEO_API void theo_session_options_init(theo_session_options *options);
THEO_API theo_status theo_session_open(theo_session **session, theo_model *model, const theo_session_options *options,
                                       theo_error *err);
THEO_API void theo_session_close(theo_session *session);

/* Makes the plan now instead of in the first call: keypoints and pairs for a network input of that size (of pairs multiples of
 * 16, both views alike), depth for a photo of that size that is cut into about `tokens` patches, 16 to 16384 (0: 1800; of other
 * tasks always 0). A session keeps the last four plans. */
THEO_API theo_status theo_session_prepare(theo_session *session, int width, int height, int tokens, theo_error *err);

/* Bytes of activations and scratch a session needs for that (weights not included), without taking them. */
THEO_API theo_status theo_session_bytes(const theo_model *model, int width, int height, int tokens,
                                        const theo_session_options *options, size_t *bytes, theo_error *err);

/* Wall time of the last call's stages in milliseconds. */
typedef struct theo_timing {
    double preprocess, forward, postprocess, total;
} theo_timing;

/* ---------------------------------------------------------------- keypoints (SuperPoint, arXiv:1712.07629) */

typedef enum theo_nms { THEO_NMS_ITERATIVE = 0, THEO_NMS_SINGLE, THEO_NMS_GREEDY } theo_nms;
typedef enum theo_border { THEO_BORDER_FOUR = 0, THEO_BORDER_HF } theo_border;
typedef enum theo_gray { THEO_GRAY_RED = 0, THEO_GRAY_RGB601, THEO_GRAY_LUMA } theo_gray;
typedef enum theo_order { THEO_ORDER_SCORE = 0, THEO_ORDER_RASTER } theo_order;
typedef enum theo_sampling { THEO_SAMPLING_A = 0, THEO_SAMPLING_B, THEO_SAMPLING_B_OLD, THEO_SAMPLING_C } theo_sampling;
typedef enum theo_fit { THEO_FIT_EXACT = 0, THEO_FIT_NATIVE, THEO_FIT_LONG } theo_fit;

/* Spec: docs/models/superpoint.md. Values outside of the ranges give THEO_ARGUMENT. */
typedef struct theo_detect_options {
    size_t size;
    int max_keypoints;         /* 1024; -1 = all, else >= 0 */
    float threshold;           /* 0.005, 0..1: keeps score > threshold (greedy: >=), compared in float32 */
    theo_nms nms;              /* iterative max-pool suppression in three rounds, one round, or greedy over sorted points */
    int nms_radius;            /* 4, 0..64 */
    int border;                /* 4, >= 0: points nearer to the border of the score map are dropped, after suppression */
    theo_border border_mode;   /* four sides, or (hf) only left and top, as Hugging Face does */
    theo_gray gray;            /* how a colour picture becomes one plane; a gray picture is its own plane */
    theo_fit fit;              /* exact: resize to net_width x net_height; native: as it is; long: longer side to long_side */
    int net_width, net_height; /* 640, 480; each >= 8 */
    int long_side;             /* for THEO_FIT_LONG: the other side keeps the aspect, rounded */
    theo_order order;          /* score descending (ties: y, then x), or raster (y, then x) unless the list was cut */
    theo_sampling sampling;    /* position of a descriptor: a (SuperGlue, HF), b x/8 - 0.5, b_old x*(Wc-1)/W, c (rpautrat) */
    bool pixel_centers;        /* coordinates (x + 0.5)*W0/W - 0.5 instead of x*W0/W */
    bool descriptors;          /* true */
    bool bgr;                  /* the caller's three channels are B,G,R */
} theo_detect_options;

/* Defaults of the field. theo_detect_options_for additionally applies what the model's file needs (rpautrat: sampling c,
 * luma). */
THEO_API void theo_detect_options_init(theo_detect_options *options);
THEO_API void theo_detect_options_for(theo_detect_options *options, const theo_model *model);
/* Hugging Face's defaults on top of what is there: rgb601, border_mode hf, all points, raster order. */
THEO_API void theo_detect_options_hf(theo_detect_options *options);

typedef struct theo_keypoints {
    int count;                /* N, may be 0 */
    int descriptor_dim;       /* C; 0 when there are no descriptors */
    const float *xy;          /* [N, 2] x, y in pixels of the photo */
    const float *scores;      /* [N] */
    const float *descriptors; /* [N, C], L2-normalised rows; NULL when descriptor_dim is 0 */
    int image_width, image_height;
    int net_width, net_height;
    float scale_x, scale_y; /* photo pixels per network pixel */
    const char *model;      /* name of the model that made them: descriptors of different models do not compare */
    theo_timing timing;
} theo_keypoints;

/* Photo to keypoints. NULL options: theo_detect_options_for the session's model. */
THEO_API theo_status theo_detect(theo_session *session, const theo_image *image, const theo_detect_options *options,
                                 theo_keypoints **keypoints, theo_error *err);

/* Descriptors at the caller's points: xy [count, 2] in pixels of the photo (by the same coordinate rule as the output of
 * theo_detect). The result holds the points in the given order with their map score (0 outside of the map). */
THEO_API theo_status theo_describe(theo_session *session, const theo_image *image, const float *xy, int count,
                                   const theo_detect_options *options, theo_keypoints **keypoints, theo_error *err);

THEO_API void theo_keypoints_free(theo_keypoints *keypoints);

/* Many photos, decoded ahead of the network on a second thread. `source` makes image `index` (the library frees it); `sink`
 * gets, on the calling thread and in order, the result (owned by the sink from then on) or the error of that image, and stops the
 * batch by a non-zero return (THEO_CANCELLED). A failed image does not stop the others: the call itself then still returns
 * THEO_OK. */
typedef theo_status (*theo_image_source)(void *user, int index, theo_image **image, theo_error *err);
typedef int (*theo_keypoints_sink)(void *user, int index, const theo_image *image, theo_keypoints *keypoints,
                                   const theo_error *err);
THEO_API theo_status theo_detect_batch(theo_session *session, int count, theo_image_source source, theo_keypoints_sink sink,
                                       void *user, const theo_detect_options *options, theo_error *err);

/* The network's own outputs. H, W: network input; Hc = H/8, Wc = W/8 rounded down. */
typedef struct theo_superpoint_maps {
    int net_width, net_height;
    int cells_x, cells_y;     /* Wc, Hc */
    int descriptor_dim;       /* C; 0 without descriptor head */
    const float *scores;      /* [8 Hc, 8 Wc], softmax without the dustbin, unfolded */
    const float *descriptors; /* [C, Hc, Wc], L2-normalised over C; NULL when C is 0 */
    const float *logits;      /* [65, Hc, Wc] */
    const float *raw;         /* [C, Hc, Wc], before normalisation; NULL when C is 0 */
    theo_timing timing;
} theo_superpoint_maps;

/* Which maps are wanted: the others are NULL in the result and cost nothing; what only they need is not run. */
enum { THEO_MAP_SCORES = 1, THEO_MAP_DESCRIPTORS = 2, THEO_MAP_LOGITS = 4, THEO_MAP_RAW = 8, THEO_MAP_ALL = 15 };

/* plane [height, width] in [0, 1], finite: exactly what the network reads; nothing is resized. Never tiled.
 * wanted: THEO_MAP_* ored together. */
THEO_API theo_status theo_detect_raw(theo_session *session, const float *plane, int width, int height, unsigned wanted,
                                     theo_superpoint_maps **maps, theo_error *err);
THEO_API void theo_superpoint_maps_free(theo_superpoint_maps *maps);

/* The plane that theo_detect hands to the network for this photo and these options (gray, fit, bgr): the input of
 * theo_detect_raw. *plane is [*height, *width]; release it with theo_buffer_free (image.h). NULL options:
 * theo_detect_options_init. */
THEO_API theo_status theo_detect_plane(const theo_image *image, const theo_detect_options *options, float **plane, int *width,
                                       int *height, theo_error *err);

#ifdef __cplusplus
}
#endif
#endif
