#include "models/vit.h"
#include "base/error.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- loading */

static int size_of(const theo_weight *w, int dimension) {
    return w ? (int)w->shape[dimension] : 0;
}

/* Side of the square table in positions [1, 1 + side * side, C]; 0 and a note where it is none. */
static int table_side(const theo_gather *s, const theo_weight *w) {
    if (!w)
        return 0;
    int side = (int)lrint(sqrt((double)(w->shape[1] - 1)));
    if (side >= 1 && side * side + 1 == w->shape[1])
        return side;
    theo_problems_note(s->problems, THEO_SHAPE, w->name, "has %lld positions: needed is one and a square of others",
                       (long long)w->shape[1]);
    return 0;
}

static theo_status refuse_other_backbones(const theo_gather *s, theo_error *err) {
    static const struct {
        const char *part, *why;
    } unknown[] = {
        {"register_tokens", "a backbone with register tokens"},
        {".mlp.w12", "a backbone with SwiGLU layers (ViT-g)"},
    };
    for (int i = 0; i < theo_weights_count(s->weights); i++)
        for (size_t k = 0; k < sizeof unknown / sizeof *unknown; k++) {
            const char *name = theo_weights_at(s->weights, i)->name;
            if (strstr(name, unknown[k].part))
                return theo_fail(err, THEO_UNSUPPORTED, theo_weights_path(s->weights), name,
                                 "is of %s, which is not supported: DINOv2 ViT-S, B and L without registers are", unknown[k].why);
        }
    return THEO_OK;
}

theo_status theo_vit_gather(theo_vit *vit, theo_packing *packing, theo_problems *problems, const theo_weights *weights,
                            const char *prefix, theo_error *err) {
    theo_gather s = {weights, packing, problems, prefix, THEO_TRANSFORMER_MAX_WIDTH};
    THEO_TRY(refuse_other_backbones(&s, err));
    const theo_weight *cls = theo_gather_expect(&s, "cls_token", 3, (int64_t[]){1, 1, 0});
    int c = size_of(cls, 2);
    if (cls && c % THEO_VIT_HEAD)
        theo_problems_note(problems, THEO_SHAPE, cls->name, "has width %d: a multiple of %d is needed", c, THEO_VIT_HEAD);
    const theo_weight *positions = theo_gather_expect(&s, "pos_embed", 3, (int64_t[]){1, 0, c});
    const theo_weight *embed = theo_gather_expect(&s, "patch_embed.proj.weight", 4, (int64_t[]){c, 3, 0, 0});
    if (embed && (embed->shape[2] != embed->shape[3] || embed->shape[2] > 64))
        theo_problems_note(problems, THEO_SHAPE, embed->name, "has patches of %lld x %lld: squares up to 64 are supported",
                           (long long)embed->shape[2], (long long)embed->shape[3]);
    *vit = (theo_vit){.width = c, .heads = c / THEO_VIT_HEAD, .patch = size_of(embed, 2), .table = table_side(&s, positions)};
    vit->hidden = theo_transformer_hidden(&s, "blocks.0");
    vit->depth = theo_transformer_depth(weights, theo_name("%sblocks.", prefix).text);
    if (vit->depth < 1 || vit->depth > THEO_TRANSFORMER_MAX_DEPTH)
        return theo_fail(err, THEO_STRUCTURE, theo_weights_path(weights), prefix, "%d transformer blocks: allowed are 1 to %d",
                         vit->depth, THEO_TRANSFORMER_MAX_DEPTH);
    vit->blocks = theo_alloc((size_t)vit->depth, sizeof *vit->blocks);
    if (!vit->blocks)
        return theo_fail(err, THEO_MEMORY, theo_weights_path(weights), NULL, "out of memory");

    theo_packing_add(packing, (theo_packing_job){.kind = THEO_PACKING_FLOATS, .weight = cls, .floats = &vit->cls});
    theo_packing_add(packing, (theo_packing_job){.kind = THEO_PACKING_FLOATS, .weight = positions, .floats = &vit->positions});
    theo_gather_floats(&s, &vit->embed_bias, "patch_embed.proj.bias", 1, (int64_t[]){c});
    theo_packing_add(packing, (theo_packing_job){.kind = THEO_PACKING_LINEAR, .weight = embed, .packed = &vit->embed});
    const theo_block_form form = {.width = c, .hidden = vit->hidden, .is_scaled = true};
    for (int i = 0; i < vit->depth; i++)
        theo_transformer_block_gather(&s, &vit->blocks[i], theo_name("blocks.%d", i).text, &form);
    theo_gather_norm(&s, &vit->norm, "norm", c);
    return THEO_OK;
}

static void visit_all(const theo_vit *vit, theo_packed_visitor visit, void *context) {
    visit(vit->embed, context);
    for (int i = 0; vit->blocks && i < vit->depth; i++) {
        theo_self_attention_visit(&vit->blocks[i].attention, visit, context);
        theo_mlp_visit(&vit->blocks[i].mlp, visit, context);
    }
}

void theo_vit_free(theo_vit *vit) {
    visit_all(vit, theo_packed_visit_free, NULL);
    for (int i = 0; vit->blocks && i < vit->depth; i++) {
        theo_norm_free(&vit->blocks[i].attention.norm);
        theo_norm_free(&vit->blocks[i].mlp.norm);
    }
    theo_free(vit->blocks);
    theo_free_aligned(vit->embed_bias);
    theo_free_aligned(vit->cls);
    theo_free_aligned(vit->positions);
    theo_norm_free(&vit->norm);
    *vit = (theo_vit){0};
}

size_t theo_vit_bytes(const theo_vit *vit) {
    size_t rows =
        1 + (size_t)vit->table * (size_t)vit->table + 4 + 4 * (size_t)vit->depth; /* positions and vectors, of C floats */
    size_t bytes = rows * (size_t)vit->width * sizeof(float);
    visit_all(vit, theo_packed_visit_bytes, &bytes);
    return bytes;
}

/* ---------------------------------------------------------------- positions */

/* The four taps of output `o` of n, from `side` inputs: Keys' kernel with a = -0.75, edges clamped. */
static void cubic_taps(int o, int n, int side, int at[4], double weight[4]) {
    const double a = -0.75;
    double x = (double)side / (n + 0.1) * (o + 0.5) - 0.5, first = floor(x), t = x - first;
    for (int k = 0; k < 4; k++) {
        int i = (int)first + k - 1;
        double d = fabs(t - (k - 1));
        at[k] = i < 0 ? 0 : i >= side ? side - 1 : i;
        weight[k] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    }
}

void theo_vit_resample_table(const float *table, int side, int channels, int rows, int columns, float *out, size_t pitch) {
    for (int y = 0; y < rows; y++) {
        int from_y[4], from_x[4];
        double weight_y[4], weight_x[4];
        cubic_taps(y, rows, side, from_y, weight_y);
        for (int x = 0; x < columns; x++, out += pitch) {
            cubic_taps(x, columns, side, from_x, weight_x);
            memset(out, 0, (size_t)channels * sizeof(float));
            for (int k = 0; k < 16; k++) {
                const float *from = table + (size_t)(from_y[k / 4] * side + from_x[k % 4]) * (size_t)channels;
                float weight = (float)(weight_y[k / 4] * weight_x[k % 4]);
                for (int c = 0; c < channels; c++)
                    out[c] += weight * from[c];
            }
        }
    }
}

void theo_vit_positions(const theo_vit *vit, int rows, int columns, float *out, size_t pitch) {
    int c = vit->width;
    const float *table = vit->positions + c;
    for (int i = 0; i < c; i++)
        out[i] = vit->cls[i] + vit->positions[i];
    out += pitch;
    if (rows == vit->table && columns == vit->table)
        for (int n = 0; n < rows * columns; n++)
            memcpy(out + (size_t)n * pitch, table + (size_t)n * (size_t)c, (size_t)c * sizeof(float));
    else
        theo_vit_resample_table(table, vit->table, c, rows, columns, out, pitch);
    for (int n = 0; n < rows * columns; n++)
        for (int i = 0; i < c; i++)
            out[(size_t)n * pitch + (size_t)i] += vit->embed_bias[i];
}

/* ---------------------------------------------------------------- on a plan */

theo_tensor theo_vit_embed(theo_plan *p, const theo_vit *vit, theo_tensor patches, theo_tensor positions) {
    return theo_plan_linear(p, "patch_embed", patches, vit->embed, theo_epilogue_add(positions));
}

theo_tensor theo_vit_record_norm(theo_plan *p, const theo_vit *vit, const char *name, theo_tensor x) {
    return theo_norm_record(p, name, &vit->norm, x);
}

theo_tensor theo_vit_record_block(theo_plan *p, const theo_vit *vit, int index, theo_tensor x, theo_tensor *after_attention) {
    static const theo_tensor no_turn = {.id = -1};
    const theo_transformer_block *b = &vit->blocks[index];
    theo_tensor_name block = theo_name("block%d", index);
    x = theo_self_attention_record(p, block.text, &b->attention, vit->heads, no_turn, x);
    if (after_attention)
        *after_attention = x;
    return theo_mlp_record(p, block.text, "norm2", &b->mlp, x);
}
