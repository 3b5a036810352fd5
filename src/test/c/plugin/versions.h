/* Uniform names for the versions of the tables. NET_VERSION chooses the version. */
#ifndef MILLRACE_TEST_VERSIONS_H
#define MILLRACE_TEST_VERSIONS_H

#include "host.h"

typedef JOIN(ncclNet_v, NET_VERSION, _t) net_t;
typedef JOIN(ncclNetProperties_v, NET_VERSION, _t) properties_t;
#define TABLE_NAME "ncclNetPlugin_v" STRING(NET_VERSION)

#if NET_VERSION >= 10
/* Callback with which NCCL reports message events, and a parent for the events. A host may have neither. */
static ncclProfilerCallback_t profiler;
static __thread void *parent;
#endif

#if NET_VERSION >= 11
typedef size_t size_argument;
static inline ncclResult_t net_init(const net_t *net, void **ctx) {
  ncclNetCommConfig_v11_t config = {NCCL_NET_TRAFFIC_CLASS_UNDEF};
  return net->init(ctx, 0x1234, &config, logger, profiler);
}
#define LISTEN(net, ctx, ...) (net)->listen(ctx, __VA_ARGS__)
#define CONNECT(net, ctx, dev, ...) (net)->connect(ctx, dev, __VA_ARGS__)
#elif NET_VERSION == 10
typedef size_t size_argument;
static inline ncclResult_t net_init(const net_t *net, void **ctx) {
  *ctx = NULL;
  return net->init(LOGGER, profiler);
}
static ncclNetCommConfig_v10_t config10 = {NCCL_NET_TRAFFIC_CLASS_UNDEF};
#define LISTEN(net, ctx, ...) ((void)(ctx), (net)->listen(__VA_ARGS__))
#define CONNECT(net, ctx, dev, ...) ((void)(ctx), (net)->connect(dev, &config10, __VA_ARGS__))
#else
#if NET_VERSION == 9
typedef size_t size_argument;
#else
typedef int size_argument;
#endif
static inline ncclResult_t net_init(const net_t *net, void **ctx) {
  *ctx = NULL;
  return net->init(logger);
}
#define LISTEN(net, ctx, ...) ((void)(ctx), (net)->listen(__VA_ARGS__))
#define CONNECT(net, ctx, dev, ...) ((void)(ctx), (net)->connect(dev, __VA_ARGS__))
#endif

#if NET_VERSION >= 10
#define PARENT parent,
#define PARENTS &parent,
#else
#define PARENT
#define PARENTS
#endif
#define ISEND(net, comm, data, size, mhandle, request) \
  (net)->isend(comm, data, (size_argument)(size), 7, mhandle, PARENT request)

static inline ncclResult_t net_irecv(const net_t *net, void *comm, void *data, size_t size, void *mhandle,
                                     void **request) {
  size_argument sizes[1] = {(size_argument)size};
  int tags[1] = {7};
  return net->irecv(comm, 1, &data, sizes, tags, &mhandle, PARENTS request);
}

#endif
