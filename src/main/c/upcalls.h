/* Interface between the shim and millrace.jar: Java's functions, and the way to call them. */
#ifndef MILLRACE_UPCALLS_H
#define MILLRACE_UPCALLS_H

#include "nccl/plugin.h"

/*
 * Increases with every change of the struct or of a function's meaning. org.millrace.plugin.Upcalls has the same
 * number. A shim and a jar with different numbers refuse to work together.
 */
#ifndef MILLRACE_PLUGIN_INTERFACE
#define MILLRACE_PLUGIN_INTERFACE 13
#endif

/*
 * The Java functions: one per operation, for all versions of NCCL's tables. If versions fill structs differently, the
 * version is the first argument. The struct exists only as a declaration. Its order numbers the functions
 * (org.millrace.plugin.Upcalls has the same order), and each call is checked against the types here. A library argument
 * is the load address of the calling NCCL.
 */
struct millraceUpcalls {
  ncclResult_t (*init)(int version, void **ctx, uint64_t commId, ncclDebugLogger_t logFunction,
                       int warnLevel, const void *library, int vendor, int ncclVersion, const char *path);
  ncclResult_t (*devices)(int *ndev);
  ncclResult_t (*getProperties)(int version, int dev, void *props, const void *library);
  ncclResult_t (*listen)(void *ctx, int dev, void *handle, void **listenComm, const void *library);
  ncclResult_t (*connect)(void *ctx, int dev, void *handle, void **sendComm,
                          ncclNetDeviceHandle_t **sendDevComm, int onStack, const void *library);
  ncclResult_t (*accept)(void *listenComm, void **recvComm, ncclNetDeviceHandle_t **recvDevComm, int onStack);
  ncclResult_t (*regMr)(void *comm, void *data, size_t size, int type, void **mhandle);
  ncclResult_t (*deregMr)(void *comm, void *mhandle);
  ncclResult_t (*isend)(void *sendComm, void *data, size_t size, int tag, void *mhandle, void **request);
  ncclResult_t (*irecv)(void *recvComm, int n, void **data, size_t *sizes, int *tags, void **mhandles,
                        void **request);
  ncclResult_t (*test)(void *request, int *done, int *size);
  ncclResult_t (*closeSend)(void *sendComm);
  ncclResult_t (*closeRecv)(void *recvComm);
  ncclResult_t (*closeListen)(void *listenComm);
  ncclResult_t (*finalize)(void *ctx);
  ncclResult_t (*tunerInit)(void **ctx, uint64_t commId, size_t nRanks, size_t nNodes,
                            const void *library);
  ncclResult_t (*tunerGetCollInfo)(void *ctx, int collType, size_t nBytes, int numPipeOps,
                                   float **collCostTable, int numAlgo, int numProto, int regBuff,
                                   int *nChannels);
  ncclResult_t (*tunerFinalize)(void *ctx);
  ncclResult_t (*ginInit)(void **ctx, uint64_t commId, ncclDebugLogger_t logFunction, int warnLevel);
  ncclResult_t (*ginDevices)(int *ndev);
  ncclResult_t (*ginGetProperties)(int version, int dev, void *props);
  ncclResult_t (*ginListen)(void *ctx, int dev, void *handle, void **listenComm);
  ncclResult_t (*ginConnect)(void *ctx, void **handles, int nranks, int rank, int queueDepth,
                             void *listenComm, void **collComm);
  ncclResult_t (*ginCreateContext)(int version, void *collComm, int nSignals, int nCounters, int nContexts,
                                   int queueDepth, int backendVersion, void **ginCtx,
                                   ncclNetDeviceHandle_t **devHandle);
  ncclResult_t (*ginRegMrSym)(void *collComm, void *data, size_t size, int type, uint64_t mrFlags, void **mhandle,
                              void **ginHandle);
  ncclResult_t (*ginDeregMrSym)(void *collComm, void *mhandle);
  ncclResult_t (*ginDestroyContext)(void *ginCtx);
  ncclResult_t (*ginCloseColl)(void *collComm);
  ncclResult_t (*ginCloseListen)(void *listenComm);
  ncclResult_t (*ginFinalize)(void *ctx);
  ncclResult_t (*rmaCreateContext)(void *collComm, int nContexts, void **rmaCtx);
  ncclResult_t (*rmaPut)(void *rmaCtx, int context, uint64_t srcOff, void *srcMhandle, size_t size,
                         uint64_t dstOff, void *dstMhandle, int rank, void **request);
  ncclResult_t (*rmaPutSignal)(void *rmaCtx, int context, uint64_t srcOff, void *srcMhandle, size_t size,
                               uint64_t dstOff, void *dstMhandle, int rank, uint64_t signalOff,
                               void *signalMhandle, uint64_t signalValue, int signalOp, void **request);
  ncclResult_t (*rmaGet)(void *rmaCtx, int context, uint64_t remoteOff, void *remoteMhandle, size_t size,
                         uint64_t localOff, void *localMhandle, int rank, void **request);
  ncclResult_t (*rmaFlush)(void *rmaCtx, int context, int rank, void **request);
  ncclResult_t (*rmaTest)(void *collComm, void *request, int *done);
  ncclResult_t (*profilerInit)(void **operations, int *mask, uint64_t communicator, int nodes, int ranks,
                               int rank);
  ncclResult_t (*profilerFinalize)(void *operations, const int64_t *events);
  ncclResult_t (*profilerPauseEnded)(void *operations);
  ncclResult_t (*collNetListen)(const void *library, int dev, void *handle, void **listenComm);
  ncclResult_t (*collNetConnect)(void **handles, int nranks, int rank, void *listenComm, void **collComm);
  ncclResult_t (*collNetReduceSupport)(int dataType, int redOp, int *supported);
  ncclResult_t (*collNetRegMr)(void *collComm, void *data, size_t size, int type, void **mhandle);
  ncclResult_t (*collNetDeregMr)(void *collComm, void *mhandle);
  ncclResult_t (*collNetAllReduce)(void *collComm, void *sendData, void *recvData, size_t count, int dataType,
                                   int redOp, void *sendMhandle, void *recvMhandle, void **request);
  ncclResult_t (*collNetAllGather)(void *collComm, void *sendData, void *recvData, size_t bytesPerRank,
                                   size_t windowOffset, size_t windowBytes, void *sendMhandle,
                                   void *recvMhandle, void **request);
  ncclResult_t (*collNetReduceScatter)(void *collComm, void *sendData, void *recvData, size_t bytesPerRank,
                                       size_t windowOffset, size_t windowBytes, int dataType, int redOp,
                                       void *sendMhandle, void *recvMhandle, void **request);
  ncclResult_t (*collNetTest)(void *request, int *done, int *size);
  ncclResult_t (*collNetCloseColl)(void *collComm);
  ncclResult_t (*collNetCloseListen)(void *listenComm);
};

/*
 * One Java function receives all calls, with the number of the function and each argument as a word. To create a native
 * function for each Java method would take at least ten milliseconds, and a program waits for it.
 */
typedef ncclResult_t (*millraceCall_t)(int function, const int64_t *arguments);

/* Functions of the shim that Java calls, see async_error.c. */
struct millraceDowncalls {
  int (*askers)(const void *library, int answer, char *report, size_t size);
  int (*lost)(uint64_t communicator, int lost);
};

/*
 * Installs Java's function, once for the life of the process, and returns the shim's own functions. Returns
 * ncclInvalidUsage if the caller's interface has another number. Returns ncclSuccess also after an earlier
 * installation, which stays.
 */
__attribute__((visibility("default"))) ncclResult_t millraceInstallUpcalls(int interface, millraceCall_t call,
                                                                           const struct millraceDowncalls **shim);

#endif
