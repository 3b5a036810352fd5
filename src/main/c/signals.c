/*
 * Keeps the host's signals away from Java's threads, and Java's signals from the host.
 *
 * A JVM gets SIGSEGV in normal operation, at safepoints and at uses of a null pointer. Its fault handlers must
 * therefore stay first. A program may set its own handlers later. Its calls of sigaction and signal are redirected to
 * this file, in the import table of each object. This file stores the program's action, and the JVM calls it for each
 * fault that is not the JVM's. The JVM queries such actions by three functions of libjsig, which this file provides. A
 * program may also set a handler in another way, by dlsym or a system call. The next call of the plugin detects such a
 * handler. The handler then becomes the program's action, and the JVM's handler is set again.
 */
#define _GNU_SOURCE
#include "descriptors.h"
#include "imports.h"
#include "shim.h"

#include <dlfcn.h>
#include <string.h>
#include <ucontext.h>

#define VERSIONS 16

typedef int (*sigaction_t)(int, const struct sigaction *, struct sigaction *);
typedef sighandler_t (*signal_t)(int, sighandler_t);

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
#define FAULTS ((int)(sizeof faults / sizeof *faults))

/*
 * The program's action and the JVM's action for one fault. A handler may read and write the program's action at any
 * time, so a pointer publishes each new version of the action. The memory of a version is reused after VERSIONS - 1
 * more changes.
 */
static struct action {
  struct sigaction versions[VERSIONS], jvm;
  unsigned next;
  struct sigaction *current;
  /* Latest call of the program's handler: the frame, and the fault's context. */
  void *frame, *context;
} actions[FAULTS];

/*
 * Whether the JVM's actions are known, and whether the program's actions are stored. Each flag is set by a release
 * store, after the store of the actions.
 */
static int known, kept;

static int program_sigaction(int, const struct sigaction *, struct sigaction *);
static sighandler_t program_signal(int, sighandler_t);
static sighandler_t program_sysv_signal(int, sighandler_t);
static sighandler_t program_sigset(int, sighandler_t);

/*
 * Functions that are redirected. In a program at fixed addresses, an object may see a jump of the program in place of a
 * function, so both addresses are recorded. For signals other than faults, the original function is called.
 */
static struct {
  const char *name;
  void *instead, *own, *seen;
} functions[] = {{"sigaction", (void *)program_sigaction, NULL, NULL},
                 {"signal", (void *)program_signal, NULL, NULL},
                 {"__sysv_signal", (void *)program_sysv_signal, NULL, NULL},
                 {"sigset", (void *)program_sigset, NULL, NULL}};

enum { SIGACTION, SIGNAL, SYSV_SIGNAL, SIGSET, FUNCTIONS };

static int own_sigaction(int signal, const struct sigaction *action, struct sigaction *old) {
  void *own = functions[SIGACTION].own;
  return (own ? (sigaction_t)own : sigaction)(signal, action, old);
}

static struct sigaction *current(struct action *action) {
  return __atomic_load_n(&action->current, __ATOMIC_ACQUIRE);
}

/* Stores a new action of the program. Returns the previous action. */
static struct sigaction replace(struct action *action, const struct sigaction *by) {
  struct sigaction *version = &action->versions[__atomic_fetch_add(&action->next, 1, __ATOMIC_RELAXED) % VERSIONS];
  *version = *by;
  struct sigaction *before = __atomic_exchange_n(&action->current, version, __ATOMIC_ACQ_REL);
  return before ? *before : *by;
}

/* Returns the stored action for a signal; null if the C library's function handles the signal. */
static struct action *kept_action(int signal) {
  for (int i = 0; i < FAULTS && __atomic_load_n(&kept, __ATOMIC_ACQUIRE); i++)
    if (faults[i] == signal)
      return &actions[i];
  return NULL;
}

static int program_sigaction(int signal, const struct sigaction *new, struct sigaction *old) {
  struct action *action = kept_action(signal);
  if (!action)
    return own_sigaction(signal, new, old);
  struct sigaction before = new ? replace(action, new) : *current(action);
  if (old)
    *old = before;
  return 0;
}

static sighandler_t set(struct action *action, sighandler_t handler, int flags) {
  return replace(action, &(struct sigaction){.sa_handler = handler, .sa_flags = flags}).sa_handler;
}

static sighandler_t program_signal(int signal, sighandler_t handler) {
  struct action *action = kept_action(signal);
  return action ? set(action, handler, SA_RESTART) : ((signal_t)functions[SIGNAL].own)(signal, handler);
}

static sighandler_t program_sysv_signal(int signal, sighandler_t handler) {
  struct action *action = kept_action(signal);
  return action ? set(action, handler, SA_RESETHAND | SA_NODEFER)
                : ((signal_t)functions[SYSV_SIGNAL].own)(signal, handler);
}

static sighandler_t program_sigset(int signal, sighandler_t handler) {
  struct action *action = kept_action(signal);
  sigset_t one, before;
  if (!action)
    return ((signal_t)functions[SIGSET].own)(signal, handler);
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &one, &before);
  sighandler_t old = handler == SIG_HOLD ? current(action)->sa_handler : set(action, handler, 0);
  return sigismember(&before, signal) ? SIG_HOLD : old;
}

/* Handles a fault if the program has no handler. The instruction runs again, and the JVM reports a crash. */
static void report_crash(struct action *action, int signal, const siginfo_t *info) {
  set(action, SIG_DFL, 0);
  if (info->si_code <= 0)
    raise(signal);
}

/*
 * The JVM calls this function for a fault that is not its own. A program's handler that has replaced the JVM's may call
 * the JVM's handler for unknown faults. The JVM then calls this function again for the same fault, from a deeper frame.
 */
static void call_program(int signal, siginfo_t *info, void *context) {
  struct action *action = kept_action(signal);
  struct sigaction now = *current(action);
  sigset_t mask, before;
  void *frame = __builtin_frame_address(0);
  int again = __atomic_load_n(&action->context, __ATOMIC_RELAXED) == context &&
              frame < __atomic_load_n(&action->frame, __ATOMIC_RELAXED);
  if (now.sa_handler == SIG_IGN && info->si_code <= 0)
    return;
  if (again || now.sa_handler == SIG_IGN || now.sa_handler == SIG_DFL) {
    report_crash(action, signal, info);
    return;
  }
  __atomic_store_n(&action->frame, frame, __ATOMIC_RELAXED);
  __atomic_store_n(&action->context, context, __ATOMIC_RELAXED);
  if (now.sa_flags & SA_RESETHAND)
    set(action, SIG_DFL, 0);
  sigorset(&mask, &((ucontext_t *)context)->uc_sigmask, &now.sa_mask);
  if (!(now.sa_flags & SA_NODEFER))
    sigaddset(&mask, signal);
  pthread_sigmask(SIG_SETMASK, &mask, &before);
  if (now.sa_flags & SA_SIGINFO)
    now.sa_sigaction(signal, info, context);
  else
    now.sa_handler(signal);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* JVM_begin_signal_setting: the JVM calls it before it sets its handlers. */
static void begin_signals(void) {
  struct sigaction program;
  for (int i = 0; i < FAULTS; i++)
    if (own_sigaction(faults[i], NULL, &program) == 0)
      replace(&actions[i], &program);
}

static void read_jvms(void) {
  for (int i = 0; i < FAULTS; i++)
    own_sigaction(faults[i], NULL, &actions[i].jvm);
  __atomic_store_n(&known, 1, __ATOMIC_RELEASE);
}

/* JVM_end_signal_setting: the JVM has set its handlers. */
static void end_signals(void) {
  read_jvms();
  __atomic_store_n(&kept, 1, __ATOMIC_RELEASE);
}

/*
 * JVM_get_signal_action: returns the program's action for a fault that is not the JVM's. If the result is the default
 * action, the JVM reports a crash.
 */
static struct sigaction *get_action(int signal) {
  static struct sigaction to_program = {.sa_sigaction = call_program, .sa_flags = SA_SIGINFO}, by_default;
  struct action *action = kept_action(signal);
  return !action ? NULL : current(action)->sa_handler == SIG_DFL ? &by_default : &to_program;
}

/* Replaces dlsym for the JVM, which looks for libjsig's functions in the whole process. */
static void *dlsym_of_jvm(void *handle, const char *name) {
  static const struct {
    const char *name;
    void *function;
  } answers[] = {{"JVM_begin_signal_setting", (void *)begin_signals},
                 {"JVM_end_signal_setting", (void *)end_signals},
                 {"JVM_get_signal_action", (void *)get_action}};
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
    if (strcmp(name, answers[i].name) == 0)
      return answers[i].function;
  return dlsym(handle, name);
}

/* Code of libjvm.so; null if the program has started the JVM. */
static const void *jvm;

/* Number of objects that had been loaded at the latest scan. Guarded by scanning. */
static unsigned long long scanned;
static int scanning;

static int lead(struct dl_phdr_info *info, size_t size, void *unused) {
  struct millraceObject object;
  (void)size, (void)unused;
  if (!millraceReadObject(info, &object) || millraceObjectHas(&object, (void *)lead))
    return 0;
  int is_jvm = millraceObjectHas(&object, jvm);
  for (int table = 0; table < 2; table++)
    for (size_t i = 0; object.relocations[table] && i < object.bytes[table] / sizeof(ElfW(Rela)); i++) {
      const ElfW(Rela) *relocation = &object.relocations[table][i];
      uintptr_t *slot = millraceImport(&object, relocation);
      const ElfW(Sym) *symbol = &object.symbols[ELF64_R_SYM(relocation->r_info)];
      const char *name = object.strings + symbol->st_name;
      if (!slot || !*slot || symbol->st_shndx != SHN_UNDEF)
        continue;
      if (is_jvm && strcmp(name, "dlsym") == 0)
        millraceStoreImport(&object, slot, (uintptr_t)dlsym_of_jvm);
      void *now = (void *)__atomic_load_n(slot, __ATOMIC_RELAXED);
      for (int k = 0; k < FUNCTIONS && !is_jvm; k++)
        /* An import that is resolved at its first call contains an address within its own object until then. */
        if (now == functions[k].own || now == functions[k].seen ||
            (millraceObjectHas(&object, now) && strcmp(name, functions[k].name) == 0))
          millraceStoreImport(&object, slot, (uintptr_t)functions[k].instead);
    }
  return 0;
}

static int count_loaded(struct dl_phdr_info *info, size_t size, void *loaded) {
  (void)size;
  *(unsigned long long *)loaded = info->dlpi_adds;
  return 1;
}

/* Redirects the imports of objects that were loaded since the last scan. */
static void lead_imports(void) {
  unsigned long long loaded = 0;
  dl_iterate_phdr(count_loaded, &loaded);
  if (loaded == __atomic_load_n(&scanned, __ATOMIC_RELAXED) || __atomic_exchange_n(&scanning, 1, __ATOMIC_ACQUIRE))
    return;
  dl_iterate_phdr(lead, NULL);
  __atomic_store_n(&scanned, loaded, __ATOMIC_RELAXED);
  __atomic_store_n(&scanning, 0, __ATOMIC_RELEASE);
}

static int has_libjsig(void) {
  return dlsym(RTLD_DEFAULT, "JVM_begin_signal_setting") != NULL;
}

/* Does nothing if libjsig is loaded before the C library, because libjsig then does the same. */
void millraceShareFaults(const void *code) {
  void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (has_libjsig() || !library)
    return;
  for (int i = 0; i < FUNCTIONS; i++) {
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *seen = dlsym(RTLD_DEFAULT, functions[i].name), *own = dlsym(library, functions[i].name);
    /* A sanitizer's function precedes the C library's. */
    int defined = seen && dladdr1(seen, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol && symbol->st_shndx != SHN_UNDEF;
    functions[i].own = defined ? seen : own;
    functions[i].seen = defined ? own : seen;
  }
  jvm = code;
  lead_imports();
}

void millraceKnowHandler(void) {
  if (!__atomic_load_n(&known, __ATOMIC_ACQUIRE) && !has_libjsig())
    read_jvms();
}

/*
 * Sets the JVM's handler again if the program has replaced it in another way than through an import table. The JVM's
 * handler uses an alternate stack if the replacing handler uses one.
 */
static int repair(int i) {
  struct action *action = &actions[i];
  struct sigaction now, jvms = action->jvm;
  if (own_sigaction(faults[i], NULL, &now) != 0 || now.sa_sigaction == jvms.sa_sigaction ||
      millraceLibrary((void *)now.sa_sigaction) == millraceLibrary((void *)jvms.sa_sigaction))
    return 0;
  if (__atomic_load_n(&kept, __ATOMIC_ACQUIRE)) {
    replace(action, &now);
    jvms.sa_flags |= now.sa_flags & SA_ONSTACK;
    own_sigaction(faults[i], &jvms, NULL);
  }
  return 1;
}

void millraceCheckFaults(int count) {
  static int warned;
  int foreign = 0;
  if (!__atomic_load_n(&known, __ATOMIC_ACQUIRE))
    return;
  for (int i = 0; i < count; i++)
    foreign |= repair(i);
  if (foreign && !__atomic_exchange_n(&warned, 1, __ATOMIC_RELAXED))
    millraceWarn("the program has set a handler of its own for SIGSEGV or another fault since the JVM was started, by dlsym or "
                 "a system call%s. A JVM gets that signal in normal operation, and the program may end by it: set the handler "
                 "before NCCL is initialized, or start the program with LD_PRELOAD=%slibjsig.so",
                 __atomic_load_n(&kept, __ATOMIC_RELAXED) ? "; the JVM's now comes first again" : "", millraceJdk());
}

void millraceBlockSignals(sigset_t *before) {
  static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
  sigset_t set;
  millraceCheckFaults(FAULTS);
  if (__atomic_load_n(&kept, __ATOMIC_ACQUIRE))
    lead_imports();
  sigfillset(&set);
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    sigdelset(&set, own[i]);
  pthread_sigmask(SIG_BLOCK, &set, before);
}

void millraceRestoreSignals(const sigset_t *before) {
  pthread_sigmask(SIG_SETMASK, before, NULL);
}
