/* A process with its own JVM. Usage: LIBRARY JAVA_HOME CLASS_PATH. */
#define NET_VERSION 11
#include "versions.h"

#include <jni.h>

int main(int count, char **arguments) {
  REQUIRE(count == 4, "usage: LIBRARY JAVA_HOME CLASS_PATH");
  char path[4096], classPath[8192];
  snprintf(path, sizeof path, "%s/lib/server/libjvm.so", arguments[2]);
  snprintf(classPath, sizeof classPath, "-Djava.class.path=%s", arguments[3]);
  jint (*create)(JavaVM **, void **, void *) = symbol(open_plugin(path), "JNI_CreateJavaVM");
  JavaVMOption options[] = {{classPath, NULL}, {"--enable-native-access=ALL-UNNAMED", NULL}, {"-Xmx64m", NULL}};
  JavaVMInitArgs vmArguments = {JNI_VERSION_21, 3, options, JNI_FALSE};
  JavaVM *vm;
  JNIEnv *env;
  REQUIRE(create(&vm, (void **)&env, &vmArguments) == JNI_OK, "no JVM");
  const net_t *net = symbol(open_plugin(arguments[1]), TABLE_NAME);
  void *ctx;
  ncclResult_t result = net_init(net, &ctx);
  if (result == ncclSuccess)
    SUCCEEDS(net->finalize(ctx));
  printf("RESULT %d\n", result);
  return 0;
}
