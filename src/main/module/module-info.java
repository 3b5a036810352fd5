/** NCCL for Java, and NCCL's network proxy in Java. */
@SuppressWarnings("requires-automatic") // Chronicle Bytes has no module descriptor
module org.millrace {
    requires java.management;
    requires jdk.net;
    requires static jdk.jfr;
    requires org.apache.logging.log4j;
    requires static org.jspecify;
    requires static chronicle.bytes;

    exports org.millrace.abi;
    exports org.millrace.chronicle;
    exports org.millrace.collnet;
    exports org.millrace.cuda;
    exports org.millrace.device.gin;
    exports org.millrace.engine;
    exports org.millrace.gin;
    exports org.millrace.nccl;
    exports org.millrace.net;
    exports org.millrace.proxy.spi;
    exports org.millrace.transport;
    exports org.millrace;

    uses org.millrace.CommunicatorProvider;
    uses org.millrace.collnet.CollectiveNetworkProvider;
    uses org.millrace.transport.Transport;

    provides org.millrace.CommunicatorProvider with org.millrace.engine.EngineProvider, org.millrace.gpu.GpuProvider;
}
