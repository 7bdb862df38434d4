/* moge_frame.h - how a photo lies in what MoGe sees, and the sizes that follow. */
#ifndef THEO_MODELS_MOGE_FRAME_H
#define THEO_MODELS_MOGE_FRAME_H

enum {
    THEO_MOGE_CANVAS_WIDTH = 1920,
    THEO_MOGE_CANVAS_HEIGHT = 1080,
    THEO_MOGE_CANVAS_TOKENS = 1800,
    THEO_MOGE_MIN_TOKENS = 16, /* that callers may ask for */
    THEO_MOGE_MAX_TOKENS = 16384,
    THEO_MOGE_PATCH = 14,
    THEO_MOGE_MIN_SIDE = 8, /* of a photo, in pixels */
    THEO_MOGE_MAX_SIDE = 1 << 16,
};

typedef enum theo_moge_generation { THEO_MOGE_1 = 1, THEO_MOGE_2 } theo_moge_generation;

/* What a plan is made for. */
typedef struct theo_moge_grid {
    int rows, columns; /* patches, each at least 1 */
    int map_h, map_w;  /* of the raw maps. MoGe-2: 16 times the patches. MoGe-1: the size that the photo is brought to first, of
                          which the patches are what is whole */
} theo_moge_grid;

/* MoGe-2: the grid nearest to `tokens` patches at that aspect, each side rounded to even at halves. MoGe-1: the size with the
 * area of `tokens` patches, each side cut down to a whole number. */
theo_moge_grid theo_moge_grid_of(theo_moge_generation generation, int width, int height, int tokens);
/* For a picture of so many whole patches. */
theo_moge_grid theo_moge_grid_of_patches(theo_moge_generation generation, int rows, int columns);

typedef enum theo_moge_fit {
    THEO_MOGE_NATIVE,  /* the photo as it is */
    THEO_MOGE_PAD,     /* within a canvas of 1920x1080, the border in ImageNet's mean colour */
    THEO_MOGE_STRETCH, /* drawn out to 1920x1080 */
} theo_moge_fit;

typedef struct theo_moge_frame {
    theo_moge_generation generation;
    int width, height; /* of the photo */
    theo_moge_grid grid;
    theo_moge_fit fit;
    int canvas_width, canvas_height; /* of what the network sees: the photo, or the canvas */
    int x, y, w, h;                  /* the photo within */
    double net_aspect;               /* width / height that the network is told. MoGe-2: of what it sees; MoGe-1: of its maps */
    double camera_aspect; /* of the picture whose focal length is looked for: the photo's, but stretched the canvas's */
} theo_moge_frame;

theo_moge_frame theo_moge_frame_of(theo_moge_generation generation, int width, int height, theo_moge_fit fit, int tokens);

#endif
