/* text_file.h - small text files that are read whole. */
#ifndef THEO_CLI_TEXT_FILE_H
#define THEO_CLI_TEXT_FILE_H

/* The text, terminated, to be freed; NULL with errno set. Files over 1 MiB are refused (EFBIG). */
char *text_file_read(const char *path);

#endif
