#include "interrupt.h"
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void remember(int signal_number) {
    caught = signal_number;
}

void interrupt_install(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            /* Closed by the caller. The wrong access mode on purpose: reading stdin or writing stdout still fails. */
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);

    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART; /* no library call is to fail half-way with EINTR */
    action.sa_handler = remember;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
}

bool interrupted(void) {
    return caught != 0;
}

int interrupt_exit_code(void) {
    return 128 + (int)caught;
}
