/* temporary.h - what is gone when the work is done. */
#ifndef THEO_CLI_TEMPORARY_H
#define THEO_CLI_TEMPORARY_H

/* Where temporary files go: TMPDIR, else /tmp. */
const char *temporary_place(void);
/* A new, empty folder there, for the caller to remove and free; NULL after saying why there is none. */
char *temporary_folder_make(void);
/* With all that is in it. NULL is fine. Frees the name. */
void temporary_folder_remove(char *folder);

#endif
