/* top2_impl.h - best and second best scores over a vector vocabulary. */
#include "kernels/kernels.h"
#include <math.h>

/* A running best, second and index in every lane. */
typedef struct top2_lanes {
    vf best, second;
    vi index;
} top2_lanes;

/* Comparisons with NaN are false, so NaN wins nothing; an equal score is no new best, so the earlier index stays. */
VEC top2_lanes take(top2_lanes top, vf score, vi index) {
    vm better = v_greater(score, top.best);
    vf second = v_select(v_greater(score, top.second), score, top.second);
    return (top2_lanes){v_select(better, score, top.best), v_select(better, top.best, second),
                        vi_select(better, index, top.index)};
}

/* One score, or the best of a lane, into a running result; of equal scores the lower index stays. */
static void take_one(float score, int32_t index, theo_top2 *top) {
    if (score > top->best || (score == top->best && index < top->index)) {
        top->second = top->best;
        top->best = score;
        top->index = index;
    } else if (score > top->second) {
        top->second = score;
    }
}

static void top2_row(const float *scores, int n, int32_t first, theo_top2 *top) {
    int i = 0;
    if (n >= 2 * VW) {
        int32_t lane[VW];
        for (int l = 0; l < VW; l++)
            lane[l] = first + l;
        vf none = v_set1(-INFINITY);
        vi index = vi_load(lane), step = vi_set1(VW);
        top2_lanes lanes = {none, none, vi_set1(-1)};
        for (; i + VW <= n; i += VW, index = vi_add(index, step))
            lanes = take(lanes, v_load(scores + i), index);
        float best[VW], second[VW];
        int32_t indices[VW];
        v_store(best, lanes.best);
        v_store(second, lanes.second);
        vi_store(indices, lanes.index);
        for (int l = 0; l < VW; l++) {
            if (indices[l] >= 0)
                take_one(best[l], indices[l], top);
            if (second[l] > top->second)
                top->second = second[l];
        }
    }
    for (; i < n; i++)
        take_one(scores[i], first + i, top);
}

static void top2_columns(const float *scores, int n, int32_t row, float *best, float *second, int32_t *index) {
    int i = 0;
    for (; i + VW <= n; i += VW) {
        top2_lanes top = {v_load(best + i), v_load(second + i), vi_load(index + i)};
        top = take(top, v_load(scores + i), vi_set1(row));
        v_store(best + i, top.best);
        v_store(second + i, top.second);
        vi_store(index + i, top.index);
    }
    for (; i < n; i++) {
        theo_top2 top = {best[i], second[i], index[i]};
        take_one(scores[i], row, &top);
        best[i] = top.best;
        second[i] = top.second;
        index[i] = top.index;
    }
}
