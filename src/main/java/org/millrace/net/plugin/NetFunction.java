package org.millrace.net.plugin;

/** The functions of NCCL's network table that are called here, by the names that they have in it. */
enum NetFunction {
    INIT("init"),
    DEVICES("devices"),
    GET_PROPERTIES("getProperties"),
    LISTEN("listen"),
    CONNECT("connect"),
    ACCEPT("accept"),
    REG_MR("regMr"),
    REG_MR_DMA_BUF("regMrDmaBuf"),
    DEREG_MR("deregMr"),
    ISEND("isend"),
    IRECV("irecv"),
    IFLUSH("iflush"),
    TEST("test"),
    CLOSE_SEND("closeSend"),
    CLOSE_RECV("closeRecv"),
    CLOSE_LISTEN("closeListen"),
    /** Since v11. */
    FINALIZE("finalize");

    private final String symbol;

    NetFunction(String symbol) {
        this.symbol = symbol;
    }

    /** Whether a table without it is of no use. */
    boolean isRequired() {
        return this != FINALIZE && this != REG_MR_DMA_BUF && this != IFLUSH;
    }

    @Override
    public String toString() {
        return symbol;
    }
}
