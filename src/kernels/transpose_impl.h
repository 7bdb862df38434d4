/* transpose_impl.h - transposition over a vector vocabulary.
 *
 * Strips of 16 rows: what is read of them stays in L1, and each output row receives a whole cache line at a time. */
#include <stddef.h>

enum { STRIP = 16 };

static void transpose(const float *in, size_t in_pitch, int rows, int columns, float *out, size_t out_pitch) {
    int whole_rows = rows / STRIP * STRIP, whole_columns = columns / VW * VW;
    for (int r = 0; r < whole_rows; r += STRIP) {
        for (int c = 0; c < whole_columns; c += VW) {
            for (int part = r; part < r + STRIP; part += VW) {
                vf block[VW];
                for (int i = 0; i < VW; i++)
                    block[i] = v_load(in + (size_t)(part + i) * in_pitch + c);
                v_transpose(block);
                for (int i = 0; i < VW; i++)
                    v_store(out + (size_t)(c + i) * out_pitch + part, block[i]);
            }
        }
    }
    for (int r = 0; r < rows; r++)
        for (int c = r < whole_rows ? whole_columns : 0; c < columns; c++)
            out[(size_t)c * out_pitch + (size_t)r] = in[(size_t)r * in_pitch + (size_t)c];
}
