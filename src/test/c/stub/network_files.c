/* Preloaded library that reports every file as a file on NFS. */
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

int fstatfs(int file, struct statfs *status) {
  (void)file;
  memset(status, 0, sizeof *status);
  status->f_type = NFS_SUPER_MAGIC;
  return 0;
}
