/* test_finite.c - NaN and infinity are found at every place of arrays of every length. */
#include "base/finite.h"
#include "t.h"
#include <float.h>

int main(void) {
    enum { MOST = 70 };
    static const float usual[] = {0, -0.0f, 1, -1, FLT_MAX, -FLT_MAX, FLT_MIN, 1e-45f, 3.4e38f};
    static const float none[] = {INFINITY, -INFINITY, NAN};
    float x[MOST];
    for (int n = 0; n <= MOST; n++) {
        for (int i = 0; i < n; i++)
            x[i] = usual[i % (int)(sizeof usual / sizeof *usual)];
        CHECK(theo_all_finite(x, (size_t)n));
        for (int i = 0; i < n; i++)
            for (int k = 0; k < 3; k++) {
                float was = x[i];
                x[i] = none[k];
                CHECK_MSG(!theo_all_finite(x, (size_t)n), "number %d of %d", i, n);
                x[i] = was;
            }
    }
    return t_done("test_finite");
}
