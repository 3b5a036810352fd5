/*
 * Hides the descriptors of the JVM and UCX from other programs. The JVM and UCX open nearly all descriptors without
 * O_CLOEXEC and have no option for it. An executed program or a forked process would inherit the sockets. If this
 * process is then killed, the sockets stay open in the other process, and peers do not learn of the death. The
 * libraries' references to open, socket and similar functions are therefore bound to the functions in this file. The
 * functions in this file open with close-on-exec, because a flag that is set later comes too late for a thread that
 * forks meanwhile. They also record the open descriptors, so that a forked child can close them.
 *
 * The JDK starts programs with files and pipes that libjava opens and the program inherits. In a JVM that the shim did
 * not start, libjava's references are not changed.
 */
#define _GNU_SOURCE
#include "descriptors.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <langinfo.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define IS_REFERENCE(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#elif defined(__aarch64__)
#define IS_REFERENCE(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#else
#define IS_REFERENCE(type) 0
#endif

/* Number of recorded descriptors. Higher descriptors are closed on exec, and stay open in a forked child. */
#define MOST_DESCRIPTORS (1 << 16)

/*
 * File of each open descriptor, by the descriptor's number; inode 0 for none. The file shows whether the number belongs
 * to another file by now, because a library can close a descriptor in ways that are not detected here (closedir).
 */
static struct {
  dev_t device;
  ino_t inode;
} own[MOST_DESCRIPTORS];
static int highest = -1;

static int jvm_is_ours;
static int uses_ucx;
static char jdk[PATH_MAX];

static int note(int descriptor) {
  struct stat file;
  if (descriptor < 0 || descriptor >= MOST_DESCRIPTORS || fstat(descriptor, &file) != 0)
    return descriptor;
  own[descriptor].device = file.st_dev;
  __atomic_store_n(&own[descriptor].inode, file.st_ino, __ATOMIC_RELEASE);
  for (int before = __atomic_load_n(&highest, __ATOMIC_RELAXED); before < descriptor;)
    if (__atomic_compare_exchange_n(&highest, &before, descriptor, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      break;
  return descriptor;
}

/* Called before the close, because another thread may get the number immediately. */
static void forget(int descriptor) {
  if (descriptor >= 0 && descriptor < MOST_DESCRIPTORS)
    __atomic_store_n(&own[descriptor].inode, 0, __ATOMIC_RELAXED);
}

/* Runs in a forked child, and may call only functions that are safe in a signal handler. */
static void close_in_child(void) {
  struct stat file;
  for (int i = 0; i <= highest; i++) {
    if (own[i].inode && fstat(i, &file) == 0 && file.st_dev == own[i].device && file.st_ino == own[i].inode)
      close(i);
    own[i].inode = 0;
  }
  highest = -1;
}

static int own_open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = va_arg(arguments, mode_t); /* undefined if the caller passed no mode */
  va_end(arguments);
  return note(open(path, flags | O_CLOEXEC, mode));
}

static int own_openat(int directory, const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return note(openat(directory, path, flags | O_CLOEXEC, mode));
}

static int own_socket(int domain, int type, int protocol) {
  return note(socket(domain, type | SOCK_CLOEXEC, protocol));
}

static int own_socketpair(int domain, int type, int protocol, int pair[2]) {
  int result = socketpair(domain, type | SOCK_CLOEXEC, protocol, pair);
  for (int i = 0; result == 0 && i < 2; i++)
    note(pair[i]);
  return result;
}

static int own_accept4(int listener, struct sockaddr *address, socklen_t *length, int flags) {
  return note(accept4(listener, address, length, flags | SOCK_CLOEXEC));
}

static int own_accept(int listener, struct sockaddr *address, socklen_t *length) {
  return own_accept4(listener, address, length, 0);
}

static int own_eventfd(unsigned count, int flags) {
  return note(eventfd(count, flags | EFD_CLOEXEC));
}

static int own_epoll_create(int size) {
  (void)size;
  return note(epoll_create1(EPOLL_CLOEXEC));
}

static int own_epoll_create1(int flags) {
  return note(epoll_create1(flags | EPOLL_CLOEXEC));
}

static int own_pipe2(int ends[2], int flags) {
  int result = pipe2(ends, flags | O_CLOEXEC);
  for (int i = 0; result == 0 && i < 2; i++)
    note(ends[i]);
  return result;
}

static int own_pipe(int ends[2]) {
  return own_pipe2(ends, 0);
}

static int own_dup(int descriptor) {
  return note(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
}

static int own_dup2(int descriptor, int other) {
  if (descriptor == other)
    return dup2(descriptor, other);
  forget(other);
  return note(dup3(descriptor, other, O_CLOEXEC));
}

static int own_close(int descriptor) {
  forget(descriptor);
  return close(descriptor);
}

/*
 * Returns the encoding of file names. In the C locale the JDK would misread non-ASCII names, and not find its own files
 * or our jar.
 */
static char *own_nl_langinfo(nl_item item) {
  char *said = nl_langinfo(item);
  return item == CODESET && !strcmp(said, "ANSI_X3.4-1968") ? "UTF-8" : said;
}

static void *own_dlopen(const char *name, int mode);

static const struct {
  const char *name;
  void *function;
} functions[] = {
    {"open", own_open},
    {"open64", own_open},
    {"openat", own_openat},
    {"openat64", own_openat},
    {"socket", own_socket},
    {"socketpair", own_socketpair},
    {"accept", own_accept},
    {"accept4", own_accept4},
    {"eventfd", own_eventfd},
    {"epoll_create", own_epoll_create},
    {"epoll_create1", own_epoll_create1},
    {"pipe", own_pipe},
    {"pipe2", own_pipe2},
    {"dup", own_dup},
    {"dup2", own_dup2},
    {"close", own_close},
    {"nl_langinfo", own_nl_langinfo},
    {"dlopen", own_dlopen},
};

/* Returns the replacement of a function that a library calls; null if the library keeps the function. */
static void *replacement(const char *name, int libjava) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (!strcmp(name, functions[i].name))
      return !libjava || !strcmp(name, "dlopen") || (jvm_is_ours && strncmp(name, "pipe", 4) != 0)
                 ? functions[i].function
                 : NULL;
  return NULL;
}

/* Parts of a loaded library, from its dynamic section. */
struct library {
  const struct dl_phdr_info *info;
  uintptr_t relro, relro_end; /* range that is read-only after loading */
  const ElfW(Sym) *symbols;
  const char *names;
  int libjava;
};

static void bind_reference(const struct library *library, const ElfW(Rela) *relocation) {
  const char *name = library->names + library->symbols[ELF64_R_SYM(relocation->r_info)].st_name;
  void *function = IS_REFERENCE(ELF64_R_TYPE(relocation->r_info)) ? replacement(name, library->libjava) : NULL;
  void **slot = (void **)(library->info->dlpi_addr + relocation->r_offset);
  if (!function || *slot == function)
    return;
  size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
  void *page = (void *)((uintptr_t)slot & ~(bytes - 1));
  int locked = (uintptr_t)slot >= library->relro && (uintptr_t)slot < library->relro_end;
  if (locked && mprotect(page, bytes, PROT_READ | PROT_WRITE) != 0)
    return;
  __atomic_store_n(slot, function, __ATOMIC_RELEASE);
  if (locked)
    mprotect(page, bytes, PROT_READ);
}

static int starts_with(const char *text, const char *start) {
  return strncmp(text, start, strlen(start)) == 0;
}

/* glibc's dynamic linker has made the addresses in a dynamic section absolute. musl's dynamic linker has not. */
static const void *address_in(const struct dl_phdr_info *info, ElfW(Addr) value) {
  return (const void *)(value < info->dlpi_addr ? info->dlpi_addr + value : value);
}

static int bind_library(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  const char *slash = strrchr(info->dlpi_name, '/'), *file = slash ? slash + 1 : info->dlpi_name;
  struct library library = {.info = info, .libjava = !strcmp(file, "libjava.so")};
  const ElfW(Dyn) *entry = NULL;
  const ElfW(Rela) *tables[2] = {NULL, NULL};
  size_t bytes[2] = {0, 0};
  if (!starts_with(info->dlpi_name, jdk) &&
      !(uses_ucx && (starts_with(file, "libucp.") || starts_with(file, "libucs.") || starts_with(file, "libuct"))))
    return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type == PT_DYNAMIC)
      entry = (const ElfW(Dyn) *)(info->dlpi_addr + part->p_vaddr);
    if (part->p_type == PT_GNU_RELRO) {
      library.relro = info->dlpi_addr + part->p_vaddr;
      library.relro_end = library.relro + part->p_memsz;
    }
  }
  for (; entry && entry->d_tag != DT_NULL; entry++)
    switch (entry->d_tag) {
    case DT_SYMTAB: library.symbols = address_in(info, entry->d_un.d_ptr); break;
    case DT_STRTAB: library.names = address_in(info, entry->d_un.d_ptr); break;
    case DT_JMPREL: tables[0] = address_in(info, entry->d_un.d_ptr); break;
    case DT_PLTRELSZ: bytes[0] = entry->d_un.d_val; break;
    case DT_RELA: tables[1] = address_in(info, entry->d_un.d_ptr); break;
    case DT_RELASZ: bytes[1] = entry->d_un.d_val; break;
    }
  for (int table = 0; library.symbols && library.names && table < 2; table++)
    for (size_t i = 0; tables[table] && i < bytes[table] / sizeof *tables[table]; i++)
      bind_reference(&library, &tables[table][i]);
  return 0;
}

/* Calls from several threads exclude each other, because dl_iterate_phdr holds the dynamic linker's lock. */
static void bind_all(void) {
  dl_iterate_phdr(bind_library, NULL);
}

/* Libraries that are loaded later open descriptors, too. */
static void *own_dlopen(const char *name, int mode) {
  void *library = dlopen(name, mode);
  if (library && name && strstr(name, "libucp."))
    uses_ucx = 1;
  if (library)
    bind_all();
  return library;
}

static void prepare(void) {
  void *library = dlopen("libjvm.so", RTLD_NOW | RTLD_NOLOAD);
  void *create = library ? dlsym(library, "JNI_CreateJavaVM") : NULL;
  Dl_info info;
  if (!create || !dladdr(create, &info) || strlen(info.dli_fname) + 2 > sizeof jdk)
    return;
  /* HOME/lib/server/libjvm.so; all other libraries are in HOME/lib */
  strcpy(jdk, info.dli_fname);
  for (int up = 0; up < 2; up++)
    if (strrchr(jdk, '/'))
      *strrchr(jdk, '/') = 0;
  strcat(jdk, "/");
  pthread_atfork(NULL, NULL, close_in_child);
}

void millraceKeepDescriptors(int ours) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (ours)
    jvm_is_ours = 1;
  pthread_once(&once, prepare);
  if (*jdk)
    bind_all();
}

const char *millraceJdk(void) {
  return jdk;
}
