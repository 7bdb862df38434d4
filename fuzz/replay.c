/* replay FILE-OR-FOLDER...: runs a fuzz target over saved inputs, in builds without libFuzzer. */
#include "fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

static int inputs;

static int run_file(const char *path) {
    FILE *file = fopen(path, "rb");
    struct stat facts;
    if (!file || fstat(fileno(file), &facts)) {
        perror(path);
        return 1;
    }
    size_t size = (size_t)facts.st_size;
    uint8_t *data = malloc(size + !size); /* of the exact size, for AddressSanitizer */
    int failed = !data || fread(data, 1, size, file) != size;
    fclose(file);
    if (failed)
        fprintf(stderr, "%s: cannot be read\n", path);
    else
        LLVMFuzzerTestOneInput(data, size);
    free(data);
    inputs++;
    return failed;
}

static int run_folder(const char *path) {
    char entry_path[4096];
    int failed = 0;
    DIR *folder = opendir(path);
    if (!folder)
        return run_file(path);
    for (struct dirent *entry; (entry = readdir(folder));) {
        snprintf(entry_path, sizeof entry_path, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.')
            failed |= run_file(entry_path);
    }
    closedir(folder);
    return failed;
}

int main(int argc, char **argv) {
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= run_folder(argv[i]);
    printf("%d inputs\n", inputs);
    return failed || !inputs;
}
