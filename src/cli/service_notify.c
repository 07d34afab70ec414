/* service_notify.c - see service_notify.h. */
#include "cli/service_notify.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

const char *service_notify_socket(char *const *environment)
{
    static const char prefix[] = "NOTIFY_SOCKET=";
    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, prefix, sizeof(prefix) - 1) == 0)
            return *environment + sizeof(prefix) - 1;
    }
    return NULL;
}

bool service_notify(const char *socket_name, const char *text)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = socket_name == NULL ? 0 : strlen(socket_name);
    bool is_abstract = len > 1 && socket_name[0] == '@';
    if (len == 0 || len >= sizeof(address.sun_path) || (socket_name[0] != '/' && !is_abstract))
        return false;
    memcpy(address.sun_path, socket_name, len);
    if (is_abstract)
        address.sun_path[0] = '\0'; /* such a name has a zero byte instead of '@', and no end */
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    size_t text_len = strlen(text);
    bool is_sent = sendto(fd, text, text_len, MSG_NOSIGNAL, (struct sockaddr *)&address, size) ==
                   (ssize_t)text_len;
    (void)close(fd);
    return is_sent;
}
