package org.millrace.engine.plan;

import org.jspecify.annotations.Nullable;
import org.millrace.Operation;
import org.millrace.device.primitives.ChunkShape;
import org.millrace.net.MemoryRegion;
import org.millrace.proxy.OperationSignature;
import org.millrace.proxy.ProxyOp;

/** What ranks that run one operation together must agree on; they count operations alike. */
record OperationId(long number, long signature, long count) {

    Operation operation() {
        return OperationSignature.operation(signature);
    }

    /** @param user the memory that the device points to; null where data goes through slots */
    ProxyOp part(long chunks, ChunkShape shape, @Nullable MemoryRegion user) {
        return new ProxyOp(number, signature, count, chunks * shape.chunkSteps(), shape.chunkSteps(),
                shape.sliceSteps(), shape.protocol(), user);
    }

    /** For connections that have no part in it. */
    ProxyOp without() {
        return part(0, ChunkShape.ONE_STEP, null);
    }

    @Override
    public String toString() {
        return OperationSignature.describe(signature, number, count);
    }
}
