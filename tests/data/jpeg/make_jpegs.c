/* Makes the JPEG files of this folder: kinds that cameras do not write. One formula picture, 45 x 37 pixels.
 *     cc make_jpegs.c -ljpeg -lm -o make_jpegs && ./make_jpegs && python3 make_expected.py > expected.txt */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

enum { WIDTH = 45, HEIGHT = 37 };

typedef struct kind {
    const char *name;
    J_COLOR_SPACE given, stored;
    int samplings[4][2]; /* horizontal, vertical of each component; 0 = 1 */
    int progressive, arithmetic, restart_rows, multi_scan, no_adobe;
} kind;

static const kind kinds[] = {
    {"gray", JCS_GRAYSCALE, JCS_GRAYSCALE, {{1, 1}}},
    {"gray-sampled-2x2", JCS_GRAYSCALE, JCS_GRAYSCALE, {{2, 2}}},
    {"gray-progressive", JCS_GRAYSCALE, JCS_GRAYSCALE, {{1, 1}}, .progressive = 1},
    {"rgb", JCS_RGB, JCS_RGB, {{1, 1}, {1, 1}, {1, 1}}},
    {"444", JCS_RGB, JCS_YCbCr, {{1, 1}, {1, 1}, {1, 1}}},
    {"422", JCS_RGB, JCS_YCbCr, {{2, 1}, {1, 1}, {1, 1}}},
    {"440", JCS_RGB, JCS_YCbCr, {{1, 2}, {1, 1}, {1, 1}}},
    {"420", JCS_RGB, JCS_YCbCr, {{2, 2}, {1, 1}, {1, 1}}},
    {"411", JCS_RGB, JCS_YCbCr, {{4, 1}, {1, 1}, {1, 1}}},
    {"410", JCS_RGB, JCS_YCbCr, {{4, 2}, {1, 1}, {1, 1}}},
    {"441", JCS_RGB, JCS_YCbCr, {{1, 4}, {1, 1}, {1, 1}}},
    {"uneven", JCS_RGB, JCS_YCbCr, {{2, 2}, {2, 1}, {1, 2}}},
    {"420-restart", JCS_RGB, JCS_YCbCr, {{2, 2}, {1, 1}, {1, 1}}, .restart_rows = 1},
    {"420-multi-scan", JCS_RGB, JCS_YCbCr, {{2, 2}, {1, 1}, {1, 1}}, .multi_scan = 1},
    {"420-progressive", JCS_RGB, JCS_YCbCr, {{2, 2}, {1, 1}, {1, 1}}, .progressive = 1},
    {"440-arithmetic", JCS_RGB, JCS_YCbCr, {{1, 2}, {1, 1}, {1, 1}}, .arithmetic = 1},
    {"420-arithmetic-progressive", JCS_RGB, JCS_YCbCr, {{2, 2}, {1, 1}, {1, 1}}, .arithmetic = 1, .progressive = 1},
    {"cmyk", JCS_CMYK, JCS_CMYK, {{1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"cmyk-no-adobe", JCS_CMYK, JCS_CMYK, {{1, 1}, {1, 1}, {1, 1}, {1, 1}}, .no_adobe = 1},
    {"ycck", JCS_CMYK, JCS_YCCK, {{1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"ycck-420-progressive", JCS_CMYK, JCS_YCCK, {{2, 2}, {1, 1}, {1, 1}, {2, 2}}, .progressive = 1},
};

static unsigned char sample(int x, int y, int channel) {
    const double wave = sin(0.11 * x * (channel + 1)) * cos(0.17 * y + channel),
                 edge = (x / 9 + y / 7 + channel) % 3 == 0 ? 50 : 0;
    return (unsigned char)(110 + 80 * wave + edge);
}

static void make(const kind *k) {
    char path[128];
    snprintf(path, sizeof path, "%s.jpg", k->name);
    FILE *file = fopen(path, "wb");
    if (!file) {
        perror(path);
        exit(1);
    }
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_stdio_dest(&c, file);
    c.image_width = WIDTH;
    c.image_height = HEIGHT;
    c.in_color_space = k->given;
    c.input_components = k->given == JCS_GRAYSCALE ? 1 : k->given == JCS_RGB ? 3 : 4;
    jpeg_set_defaults(&c);
    jpeg_set_colorspace(&c, k->stored);
    jpeg_set_quality(&c, 85, TRUE);
    for (int i = 0; i < c.num_components; i++) {
        c.comp_info[i].h_samp_factor = k->samplings[i][0];
        c.comp_info[i].v_samp_factor = k->samplings[i][1];
    }
    c.arith_code = k->arithmetic;
    c.restart_in_rows = k->restart_rows;
    if (k->no_adobe)
        c.write_Adobe_marker = FALSE;
    static const jpeg_scan_info each[3] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    if (k->progressive)
        jpeg_simple_progression(&c);
    if (k->multi_scan) {
        c.scan_info = each;
        c.num_scans = 3;
    }
    jpeg_start_compress(&c, TRUE);
    for (int y = 0; y < HEIGHT; y++) {
        unsigned char row[4 * WIDTH], *at = row;
        for (int x = 0; x < WIDTH; x++)
            for (int i = 0; i < c.input_components; i++)
                row[x * c.input_components + i] = sample(x, y, i);
        jpeg_write_scanlines(&c, &at, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    fclose(file);
}

int main(void) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        make(&kinds[i]);
    return 0;
}
