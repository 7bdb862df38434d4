/* The readable reference of the softmax of attention. */
#include "kernels/attention.h"
#include <math.h>

enum { LANES = THEO_SOFTMAX_LANES, CHUNK = 16 };

static float *score(const theo_softmax_step *s, int row, int key) {
    return s->scores + (size_t)(key / s->nr * s->rows + row) * (size_t)s->nr + key % s->nr;
}

static void step(const theo_softmax_step *s) {
    for (int r = 0; r < s->rows; r++) {
        float old = s->first ? -INFINITY : s->largest[r], largest = old;
        for (int k = 0; k < s->keys; k++)
            largest = fmaxf(largest, *score(s, r, k) * s->scale);
        double factor = exp2((double)old - (double)largest);
        s->largest[r] = largest;

        double sum = 0.0;
        for (int k = 0; k < (s->keys + CHUNK - 1) / CHUNK * CHUNK; k++) {
            double weight = k < s->keys ? exp2((double)*score(s, r, k) * (double)s->scale - (double)largest) : 0.0;
            sum += weight;
            s->weights[(k / CHUNK * s->mr + r) * CHUNK + k % CHUNK] = (float)weight;
        }
        for (int lane = 0; lane < LANES; lane++)
            s->sums[r * LANES + lane] = (float)((s->first ? 0.0 : (double)s->sums[r * LANES + lane] * factor) + sum / LANES);
        for (int p = 0; p < s->value_panels && !s->first; p++)
            for (int c = 0; c < s->nr; c++)
                s->values[(p * s->rows + r) * s->nr + c] = (float)((double)s->values[(p * s->rows + r) * s->nr + c] * factor);
    }
}

static void finish(const theo_softmax_finish *f) {
    for (int r = 0; r < f->rows; r++) {
        double sum = 0.0;
        for (int lane = 0; lane < LANES; lane++)
            sum += (double)f->sums[r * LANES + lane];
        for (int c = 0; c < f->columns; c++)
            f->out[(size_t)r * f->out_pitch + (size_t)c] =
                (float)((double)f->values[(c / f->nr * f->rows + r) * f->nr + c % f->nr] / sum);
    }
}

const theo_attention_kernels theo_attention_c = {step, finish};
