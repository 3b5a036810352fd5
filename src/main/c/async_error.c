/*
 * Answers ncclCommGetAsyncError with ncclRemoteError for a communicator that has lost a peer. NCCL does not detect the
 * loss, because it does not poll connections that were taken over. After the first loss, and not before, the program's
 * calls of that function are redirected to this file: the entry for the function changes in the import table of each
 * object that calls it. The object's relocations show the entry. A function pointer from dlsym still calls NCCL's own
 * function.
 *
 * A communicator is identified by its hash. NCCL passes the hash to a network. NCCL's structure behind the
 * communicator's pointer also contains the hash, at one offset for each version. The offset is searched once, in the
 * memory of a communicator that NCCL has accepted as valid.
 */
#define _GNU_SOURCE
#include "async_error.h"
#include "imports.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define COMMUNICATORS 4096
/*
 * Maximum number of bytes to search for the hash. NCCL's structure has one MiB, and the hash lies after its first page.
 */
#define MOST_BYTES (16 << 20)
#define PIECE_BYTES (16 << 10)
#define NONE 0

/* Guards the variables below, except where a comment permits access without it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct communicator {
  void *context; /* null if the entry is free */
  uint64_t hash;
  int lost;
  int answered;
} communicators[COMMUNICATORS];
static int places;

/* Number of lost communicators. Read without the lock, so that a call costs only a load while it is 0. */
static int lost_count;

static ncclDebugLogger_t logger;

/* Load address of the libnccl that calls the plugin, with functions to redirect. libnccl stays loaded. */
static void *nccl;

/* Offset of the hash; NONE until it is found. */
static size_t offset;
static int told_of_absence;

static ncclResult_t async_error(ncclComm_t, ncclResult_t *);
static ncclResult_t shrink(ncclComm_t, int *, int, ncclComm_t *, ncclConfig_t *, int);

/*
 * NCCL's functions and their replacements. Each function has a second name with a leading p, for tools that replace the
 * function with the first name. own is written once, before any call is redirected.
 */
static struct {
  const char *name;
  void *instead;
  void *own;
} functions[] = {{"pncclCommGetAsyncError", (void *)async_error, NULL}, {"pncclCommShrink", (void *)shrink, NULL}};

enum { ASYNC_ERROR, SHRINK, FUNCTIONS };

/* Reaction of a program since its communicator lost a peer, as in org.millrace.plugin.loss.AsyncErrors. */
enum { NOT_ASKED, TOLD, GIVEN_UP };

static void say(const char *what) {
  millraceLog(logger, NCCL_LOG_INFO, what);
}

void millraceFindNccl(ncclDebugLogger_t logFunction) {
  Dl_info from;
  pthread_mutex_lock(&lock);
  if (!logger && dladdr((void *)logFunction, &from)) {
    void *library = dlopen(from.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    logger = logFunction;
    nccl = from.dli_fbase;
    for (int i = 0; library && i < FUNCTIONS; i++) {
      void *found = dlsym(library, functions[i].name + 1);
      if (found && millraceLibrary(found) == nccl)
        functions[i].own = found;
    }
  }
  pthread_mutex_unlock(&lock);
}

void millraceCommunicatorBegins(void *context, uint64_t communicator) {
  int place = 0;
  pthread_mutex_lock(&lock);
  while (place < COMMUNICATORS && communicators[place].context)
    place++;
  if (place < COMMUNICATORS) {
    communicators[place] = (struct communicator){context, communicator, 0, NOT_ASKED};
    places = place < places ? places : place + 1;
  }
  pthread_mutex_unlock(&lock);
}

static void set_lost(struct communicator *communicator, int lost) {
  __atomic_add_fetch(&lost_count, lost - communicator->lost, __ATOMIC_RELEASE);
  communicator->lost = lost;
}

void millraceCommunicatorEnds(void *context) {
  pthread_mutex_lock(&lock);
  for (int i = 0; context && i < places; i++)
    if (communicators[i].context == context) {
      set_lost(&communicators[i], 0);
      communicators[i].context = NULL;
    }
  pthread_mutex_unlock(&lock);
}

/* Sets or clears the loss of communicators with a hash. Returns the program's reaction since the loss. */
static int set_all_lost(uint64_t hash, int lost) {
  int answered = NOT_ASKED;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < places; i++)
    if (communicators[i].context && communicators[i].hash == hash) {
      set_lost(&communicators[i], lost);
      answered = communicators[i].answered > answered ? communicators[i].answered : answered;
    }
  pthread_mutex_unlock(&lock);
  return answered;
}

static int is_known(uint64_t hash) {
  for (int i = 0; i < places; i++)
    if (communicators[i].context && communicators[i].hash == hash)
      return 1;
  return 0;
}

/* Reads this process's memory. An invalid address causes an error, not a signal. */
static ssize_t read_safely(void *to, const void *from, size_t bytes) {
  struct iovec here = {to, bytes}, there = {(void *)from, bytes};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0);
}

/*
 * Searches the memory of a communicator for its hash. A structure that contains several known hashes is skipped,
 * because it may also keep the hash of the communicator from which it was created.
 */
static void find_offset(ncclComm_t comm) {
  uint64_t piece[PIECE_BYTES / sizeof(uint64_t)], hash = 0;
  size_t bytes = malloc_usable_size(comm), found = NONE;
  ssize_t got;
  for (size_t at = 0; at < bytes && at < MOST_BYTES; at += (size_t)got) {
    size_t wanted = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
    got = read_safely(piece, (char *)comm + at, wanted);
    if (got < (ssize_t)sizeof *piece)
      break;
    for (size_t i = 0; i < (size_t)got / sizeof *piece; i++) {
      if (piece[i] == 0 || !is_known(piece[i]))
        continue;
      if (found != NONE && piece[i] != hash)
        return;
      hash = piece[i];
      found = found != NONE ? found : at + i * sizeof *piece;
    }
  }
  offset = found;
}

/* Records that the program queries a communicator or abandons it. Returns whether the communicator has lost a peer. */
static int note(ncclComm_t comm, int answered) {
  int lost = 0;
  /* The record of an abandoned communicator is also needed if the loss is reported later. */
  if (answered == TOLD && !__atomic_load_n(&lost_count, __ATOMIC_ACQUIRE))
    return 0;
  pthread_mutex_lock(&lock);
  if (offset == NONE)
    find_offset(comm);
  if (offset != NONE) {
    uint64_t hash = *(uint64_t *)((char *)comm + offset);
    for (int i = 0; i < places; i++)
      if (communicators[i].context && communicators[i].hash == hash) {
        if (communicators[i].lost || answered == GIVEN_UP)
          communicators[i].answered = answered;
        lost |= communicators[i].lost;
      }
  } else if (!told_of_absence) {
    told_of_absence = 1;
    say("ncclCommGetAsyncError does not report a lost peer: a communicator's hash is not found in its memory");
  }
  pthread_mutex_unlock(&lock);
  return lost;
}

static ncclResult_t async_error(ncclComm_t comm, ncclResult_t *error) {
  ncclResult_t result = ((ncclResult_t (*)(ncclComm_t, ncclResult_t *))functions[ASYNC_ERROR].own)(comm, error);
  if (result == ncclSuccess && (*error == ncclSuccess || *error == ncclInProgress) && note(comm, TOLD))
    *error = ncclRemoteError;
  return result;
}

/*
 * ncclCommShrink. The other ranks continue in a new communicator, and no rank waits for the old communicator any
 * longer. The connections of the old communicator stay until it is destroyed.
 */
static ncclResult_t shrink(ncclComm_t comm, int *excluded, int count, ncclComm_t *made, ncclConfig_t *config,
                           int flags) {
  if (comm && flags & NCCL_SHRINK_ABORT)
    note(comm, GIVEN_UP);
  return ((ncclResult_t (*)(ncclComm_t, int *, int, ncclComm_t *, ncclConfig_t *, int))functions[SHRINK].own)(
      comm, excluded, count, made, config, flags);
}

/* Parameters and results of a scan of the loaded objects. */
struct look {
  int answer;      /* 1: the scan redirects calls to this library; 0: the scan only counts them */
  int ambiguous; /* whether the target of an unresolved import is unknown */
  int others;      /* number of imports of another library's function */
  int found;
  char *names;
  size_t size;
};

static int is_import_of(const struct millraceObject *object, size_t symbol, const char *name) {
  const ElfW(Sym) *import = &object->symbols[symbol];
  const char *called = object->strings + import->st_name;
  return import->st_shndx == SHN_UNDEF && import->st_name &&
         (strcmp(called, name + 1) == 0 || strcmp(called, name) == 0);
}

/*
 * Handles one entry of an import table. Returns whether a call through the entry arrives in this file, or would arrive
 * here after a redirection.
 */
static int lead(struct look *look, const struct millraceObject *object, uintptr_t *slot, int function) {
  uintptr_t now = __atomic_load_n(slot, __ATOMIC_RELAXED);
  uintptr_t own = (uintptr_t)functions[function].own, instead = (uintptr_t)functions[function].instead;
  /* Before its first call, an import that is resolved at the first call contains an address within its own object. */
  int unresolved = millraceObjectHas(object, (void *)now) && !look->ambiguous;
  if (now == instead)
    return 1;
  if (now != own && !unresolved) {
    look->others++;
    return 0;
  }
  if (look->answer)
    millraceStoreImport(object, slot, instead);
  return 1;
}

static int lead_all(struct look *look, const struct millraceObject *object, const ElfW(Rela) *relocations, size_t bytes,
                    size_t symbol, int function) {
  int led = 0;
  for (size_t i = 0; relocations && i < bytes / sizeof *relocations; i++) {
    uintptr_t *slot = ELF64_R_SYM(relocations[i].r_info) == symbol ? millraceImport(object, &relocations[i]) : NULL;
    led += slot ? lead(look, object, slot, function) : 0;
  }
  return led;
}

/* Returns the number of symbols that an object's relocations use. The imports are among these symbols. */
static size_t symbols_of(const ElfW(Rela) *const *relocations, const size_t *bytes) {
  size_t symbols = 0;
  for (int table = 0; table < 2; table++)
    for (size_t i = 0; relocations[table] && i < bytes[table] / sizeof **relocations; i++)
      if (ELF64_R_SYM(relocations[table][i].r_info) >= symbols)
        symbols = ELF64_R_SYM(relocations[table][i].r_info) + 1;
  return symbols;
}

static const char *name_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* dl_iterate_phdr holds the loader's lock during this call, so the object stays loaded. */
static int visit(struct dl_phdr_info *info, size_t size, void *argument) {
  struct look *look = argument;
  struct millraceObject object;
  int led = 0;
  (void)size;
  if (!millraceReadObject(info, &object) || millraceObjectHas(&object, nccl))
    return 0;
  size_t symbols = symbols_of(object.relocations, object.bytes);
  for (size_t symbol = 1; symbol < symbols; symbol++)
    for (int function = 0; function < FUNCTIONS; function++)
      if (functions[function].own && is_import_of(&object, symbol, functions[function].name))
        for (int i = 0; i < 2; i++) {
          int some = lead_all(look, &object, object.relocations[i], object.bytes[i], symbol, function);
          led += function == ASYNC_ERROR ? some : 0;
        }
  if (led) {
    size_t used = look->size ? strlen(look->names) : 0;
    look->found++;
    if (used < look->size)
      snprintf(look->names + used, look->size - used, "%s%s", used ? ", " : "",
               *info->dlpi_name ? name_of(info->dlpi_name) : "the program");
  }
  return 0;
}

/*
 * Returns the load address of the library that defines a function. If a program at fixed addresses takes the address of
 * the function, all objects see a jump within the program. The symbol of this jump has no definition. In that case, the
 * first later object with a definition defines the function.
 */
static const void *definer(void *function, const char *name) {
  Dl_info info = {0};
  struct link_map *map = NULL;
  const ElfW(Sym) *symbol = NULL;
  if (!function || !dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT))
    return NULL;
  if (!symbol || symbol->st_shndx != SHN_UNDEF)
    return info.dli_fbase;
  dladdr1(function, &info, (void **)&map, RTLD_DL_LINKMAP);
  for (map = map ? map->l_next : NULL; map; map = map->l_next) {
    /* The kernel's own object has no path, and dlsym does not support it. */
    void *object = strchr(map->l_name, '/') ? dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *found = object ? dlsym(object, name) : NULL;
    struct link_map *from = NULL;
    if (object)
      dlclose(object);
    if (found && dladdr1(found, &info, (void **)&from, RTLD_DL_LINKMAP) && from == map)
      return info.dli_fbase;
  }
  return NULL;
}

static int count_other_nccls(struct dl_phdr_info *info, size_t size, void *argument) {
  static const char prefix[] = "libnccl.so";
  uintptr_t own = (uintptr_t)nccl;
  (void)size;
  if (strncmp(name_of(info->dlpi_name), prefix, sizeof prefix - 1) == 0 && info->dlpi_addr != own)
    ++*(int *)argument;
  return 0;
}

/* Returns the reason why calls of an NCCL cannot be answered; null if they can be answered. */
static const char *obstacle(const void *library) {
  uint64_t one = 1, other = 0;
  if (library && library != nccl)
    return "it is another NCCL of this process whose calls are answered";
  if (!functions[ASYNC_ERROR].own)
    return "NCCL's functions are a part of the program, and not of a library";
  if (definer((void *)malloc, "malloc") != definer((void *)malloc_usable_size, "malloc_usable_size"))
    return "the program has a malloc of its own, without a malloc_usable_size";
  if (read_safely(&other, &one, sizeof one) != sizeof one || other != one)
    return "the kernel refuses process_vm_readv";
  return NULL;
}

/*
 * Finds the objects that call ncclCommGetAsyncError. If answer is set, redirects their calls of this function and of
 * ncclCommShrink to this file. The report contains the objects' names, or the reason why no object was found. Returns
 * the number of objects.
 */
static int askers(const void *library, int answer, char *report, size_t size) {
  struct look look = {.answer = answer, .names = report, .size = size};
  pthread_mutex_lock(&lock);
  const char *why = obstacle(library);
  pthread_mutex_unlock(&lock);
  if (size)
    *report = 0;
  if (!why) {
    const char *name = functions[ASYNC_ERROR].name + 1;
    void *first = dlsym(RTLD_DEFAULT, name);
    look.ambiguous = first && definer(first, name) != nccl;
    dl_iterate_phdr(count_other_nccls, &look.ambiguous);
    dl_iterate_phdr(visit, &look);
    if (!look.found)
      why = look.others ? "another library than NCCL has it" : "no object that is loaded imports it";
  }
  if (why)
    snprintf(report, size, "%s", why);
  return look.found;
}

const struct millraceDowncalls millraceDowncalls = {askers, set_all_lost};
