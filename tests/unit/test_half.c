/* binary16 and bfloat16: every half there and back, and rounding against exact arithmetic in double. */
#include "formats/dtype.h"
#include "t.h"

/* Value of a finite half, by its definition. */
static double value_of(uint16_t h) {
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double magnitude = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return h & 0x8000 ? -magnitude : magnitude;
}

static void test_every_half(void) {
    static uint16_t halves[65536], back[65536];
    static float floats[65536];
    for (int i = 0; i < 65536; i++)
        halves[i] = (uint16_t)i;
    theo_f16_to_f32(floats, halves, 65536);
    theo_f32_to_f16(back, floats, 65536);
    for (int i = 0; i < 65536; i++) {
        bool is_nan = (i & 0x7fff) > 0x7c00, is_inf = (i & 0x7fff) == 0x7c00;
        if (is_nan) {
            CHECK(isnan(floats[i]) && (back[i] & 0x7fff) > 0x7c00 && (back[i] >> 15) == i >> 15);
            continue;
        }
        CHECK(is_inf ? isinf(floats[i]) && (signbit(floats[i]) != 0) == (i >= 0x8000) : (double)floats[i] == value_of(halves[i]));
        CHECK_MSG(back[i] == halves[i], "%04x came back as %04x", halves[i], back[i]);
    }
}

/* Between two neighbouring halves: below, at and above the middle; the tie goes to the even one. */
static void test_rounding(void) {
    for (int i = 0; i < 0x7bff; i++) {
        double low = value_of((uint16_t)i), high = value_of((uint16_t)(i + 1));
        float middle = (float)((low + high) / 2); /* exact */
        float in[6] = {nextafterf(middle, 0), middle, nextafterf(middle, 1e9f)};
        uint16_t out[6];
        for (int k = 0; k < 3; k++)
            in[3 + k] = -in[k];
        theo_f32_to_f16(out, in, 6);
        uint16_t want[3] = {(uint16_t)i, (uint16_t)(i + (i & 1)), (uint16_t)(i + 1)};
        for (int k = 0; k < 3; k++)
            CHECK_MSG(out[k] == want[k] && out[3 + k] == (want[k] | 0x8000), "%a: %04x %04x", (double)in[k], out[k], out[3 + k]);
    }
    const float edges[] = {65519.996f, 65520, 1e30f, INFINITY, 1e-30f, 0x1p-149f, 0x1p-25f, 0x1.000002p-25f};
    const uint16_t want[] = {0x7bff, 0x7c00, 0x7c00, 0x7c00, 0, 0, 0, 1};
    uint16_t out[8];
    theo_f32_to_f16(out, edges, 8);
    for (int k = 0; k < 8; k++)
        CHECK_MSG(out[k] == want[k], "%a: %04x", (double)edges[k], out[k]);
}

static void test_bf16(void) {
    const uint16_t in[] = {0x3f80, 0xc020, 0x7f80, 0x0001};
    const float want[] = {1, -2.5f, INFINITY, 0x1p-133f};
    float out[4];
    theo_bf16_to_f32(out, in, 4);
    CHECK(memcmp(out, want, sizeof want) == 0);
}

int main(void) {
    test_every_half();
    test_rounding();
    test_bf16();
    return t_done("half");
}
