/* hdf.h - writes HDF5 files: groups and contiguous datasets of numbers, nothing else.
 *
 * Written here and not by libhdf5, which in its packaged builds brings dozens of further libraries (curl, Kerberos, LDAP) into
 * every process that links it. */
#ifndef THEO_FORMATS_HDF_H
#define THEO_FORMATS_HDF_H

#include "base/file.h"
#include "formats/bump.h"

#include <theo/files.h>

typedef struct theo_hdf_node theo_hdf_node; /* a group or dataset of the file */

typedef struct theo_hdf {
    theo_file file;
    uint64_t at; /* bytes written */
    theo_bump memory;
    theo_hdf_node *root;
    theo_hdf_node **table; /* by parent and name; open addressing */
    size_t table_size, nodes;
} theo_hdf;

theo_status theo_hdf_create(theo_hdf *hdf, const char *path, theo_error *err);
/* The group of that name in `parent`, made if need be. THEO_ARGUMENT for an empty name, one with '/', and one that a dataset has.
 */
theo_status theo_hdf_group(theo_hdf *hdf, theo_hdf_node *parent, const char *name, theo_hdf_node **group, theo_error *err);
/* Has the group members? */
bool theo_hdf_is_empty(const theo_hdf_node *group);
/* F64, F32, F16 and the signed integers. THEO_ARGUMENT if the name exists. */
theo_status theo_hdf_dataset(theo_hdf *hdf, theo_hdf_node *parent, const char *name, theo_dtype dtype, int rank,
                             const int64_t *shape, const void *data, theo_error *err);
/* Writes the groups and gives the file its name. Closed also on failure. */
theo_status theo_hdf_finish(theo_hdf *hdf, theo_error *err);
/* Removes what was written; nothing happens after theo_hdf_finish. */
void theo_hdf_abandon(theo_hdf *hdf);

#endif
