/*
 * A program that sets a handler of SIGSEGV after the plugin has started a JVM. Usage: LIBRARY WAY [LATER].
 * - import: by sigaction.
 * - signal: by signal.
 * - dlsym: by the C library's function.
 * - raw: by a system call, as Go does.
 * - forwarding: also by a system call. The handler calls the JVM's handler for faults of other code, as Go's handler
 * does.
 * - later: in the library LATER, which is loaded after the start. It is this file, compiled with -DLATER.
 *
 * Then Java code uses null pointers, the JVM stops at safepoints, and the program's own faults reach its handler. As a
 * library for Python (-shared) it exports start and use_java.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static char *forbidden;
static volatile sig_atomic_t faults, others;
static struct sigaction before;

static void on_fault(int signal, siginfo_t *info, void *context) {
  if (signal != SIGSEGV) {
    others++;
    return;
  }
  if (info->si_addr != forbidden) {
    if (before.sa_flags & SA_SIGINFO)
      before.sa_sigaction(signal, info, context);
    else
      _exit(3);
    return;
  }
  faults++;
  mprotect(forbidden, 4096, PROT_READ | PROT_WRITE);
}

#ifdef LATER
/* Sets the handler, which repairs one page. */
void set_handler(char *page) {
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  forbidden = page;
  sigaction(SIGSEGV, &action, 0);
}

int count_faults(void) { return faults; }
#else
#define NET_VERSION 11
#include "versions.h"

#include <jni.h>
#include <pthread.h>
#include <sys/syscall.h>

#define NULLS 4000
#define COLLECTIONS 15

static const int others_of_jvm[] = {SIGBUS, SIGFPE, SIGILL};
static const net_t *net;
static void *ctx;
static int (*later_faults)(void);

static JNIEnv *attach(void) {
  void *jvm = dlopen("libjvm.so", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(jvm, "%s", dlerror());
  jint (*created)(JavaVM **, jsize, jsize *) = symbol(jvm, "JNI_GetCreatedJavaVMs");
  JavaVM *vm;
  JNIEnv *env;
  jsize count;
  REQUIRE(created(&vm, 1, &count) == JNI_OK && count == 1, "no JVM");
  REQUIRE((*vm)->AttachCurrentThreadAsDaemon(vm, (void **)&env, NULL) == JNI_OK, "attach");
  return env;
}

/* Java detects each null pointer by SIGSEGV, until the compiler adds a test for null. */
static void *use_nulls(void *unused) {
  JNIEnv *env = attach();
  jclass string = (*env)->FindClass(env, "java/lang/String");
  jmethodID copy = (*env)->GetStaticMethodID(env, string, "copyValueOf", "([C)Ljava/lang/String;");
  for (int i = 0; i < NULLS; i++) {
    (*env)->CallStaticObjectMethod(env, string, copy, NULL);
    REQUIRE((*env)->ExceptionCheck(env), "no exception");
    (*env)->ExceptionClear(env);
  }
  return unused;
}

/* Runs compiled loops, which a safepoint stops by SIGSEGV. */
static void *compute(void *unused) {
  JNIEnv *env = attach();
  jclass integer = (*env)->FindClass(env, "java/math/BigInteger");
  jobject seven = (*env)->NewObject(env, integer, (*env)->GetMethodID(env, integer, "<init>", "(Ljava/lang/String;)V"),
                                    (*env)->NewStringUTF(env, "7"));
  jmethodID pow = (*env)->GetMethodID(env, integer, "pow", "(I)Ljava/math/BigInteger;");
  for (int i = 0; i < 12; i++)
    (*env)->DeleteLocalRef(env, (*env)->CallObjectMethod(env, seven, pow, 20000 + i));
  return unused;
}

void use_java(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, use_nulls, NULL);
  pthread_create(&threads[1], NULL, compute, NULL);
  JNIEnv *env = attach();
  jclass system = (*env)->FindClass(env, "java/lang/System");
  jmethodID collect = (*env)->GetStaticMethodID(env, system, "gc", "()V");
  for (int i = 0; i < COLLECTIONS; i++)
    (*env)->CallStaticVoidMethod(env, system, collect);
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
}

/* Calls the plugin as a program does between two operations. */
static void call_plugin(void) {
  char handle[NCCL_NET_HANDLE_MAXSIZE];
  void *listener;
  SUCCEEDS(LISTEN(net, ctx, 0, handle, &listener));
  SUCCEEDS(net->closeListen(listener));
}

void start(const char *library) {
  net = symbol(open_plugin(library), TABLE_NAME);
  SUCCEEDS(net_init(net, &ctx));
}

static void set_handler(const char *way, const char *later) {
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  if (strcmp(way, "import") == 0) {
    SUCCEEDS(sigaction(SIGSEGV, &action, NULL));
    SUCCEEDS(sigaction(SIGSEGV, NULL, &action));
    REQUIRE(action.sa_sigaction == on_fault, "the program does not get its own handler");
    for (int i = 0; i < 3; i++)
      SUCCEEDS((ncclResult_t)sigaction(others_of_jvm[i], &action, NULL));
  } else if (strcmp(way, "signal") == 0) {
    REQUIRE(signal(SIGSEGV, (sighandler_t)(void *)on_fault) == SIG_DFL, "it was not the default");
    REQUIRE(signal(SIGSEGV, SIG_DFL) == (sighandler_t)(void *)on_fault, "it was not the program's");
    SUCCEEDS(sigaction(SIGSEGV, &action, NULL));
  } else if (strcmp(way, "dlsym") == 0) {
    int (*set)(int, const struct sigaction *, struct sigaction *) =
        symbol(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), "sigaction");
    SUCCEEDS(set(SIGSEGV, &action, NULL));
  } else if (strcmp(way, "later") == 0) {
    void *library = open_plugin(later);
    call_plugin();
    void (*set)(char *) = symbol(library, "set_handler");
    later_faults = symbol(library, "count_faults");
    set(forbidden);
  } else {
    /* The kernel's structure of x86_64. The C library's function fills in the restorer. */
    int (*set)(int, const struct sigaction *, struct sigaction *) =
        symbol(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), "sigaction");
    long words[4];
    action.sa_flags |= SA_ONSTACK;
    SUCCEEDS(set(SIGUSR1, &action, NULL));
    SUCCEEDS((ncclResult_t)syscall(SYS_rt_sigaction, SIGUSR1, NULL, words, 8));
    if (strcmp(way, "forwarding") == 0)
      SUCCEEDS(set(SIGSEGV, NULL, &before));
    SUCCEEDS((ncclResult_t)syscall(SYS_rt_sigaction, SIGSEGV, words, NULL, 8));
  }
}

static void provoke_fault(void) {
  int count = later_faults ? later_faults() : faults;
  mprotect(forbidden, 4096, PROT_NONE);
  *(volatile char *)forbidden = 1;
  REQUIRE((later_faults ? later_faults() : faults) == count + 1, "the program's handler was not called");
}

int main(int count, char **arguments) {
  REQUIRE(count >= 3, "usage: LIBRARY WAY [LATER]");
  forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  start(arguments[1]);
  set_handler(arguments[2], arguments[3]);
  call_plugin();
  for (int i = 0; i < 3; i++) {
    use_java();
    provoke_fault();
  }
  for (int i = 0; i < 3 && strcmp(arguments[2], "import") == 0; i++)
    raise(others_of_jvm[i]);
  REQUIRE(others == (strcmp(arguments[2], "import") ? 0 : 3), "%d other signals", (int)others);
  SUCCEEDS(net->finalize(ctx));
  printf("OK\n");
  return 0;
}
#endif
