package org.millrace.gpu;

import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.cuda.CudaRuntime;
import org.millrace.nccl.NcclLibrary;

/** Both libraries, loaded from where the settings say. */
record Libraries(CudaRuntime cuda, NcclLibrary nccl) {

    static Libraries load(Configuration configuration) {
        CudaRuntime cuda =
                CudaRuntime.load(configuration.get(Settings.CUDART_LIBRARY).map(Object::toString).orElse(null));
        return new Libraries(cuda,
                NcclLibrary.load(configuration.get(Settings.NCCL_LIBRARY).map(Object::toString).orElse(null)));
    }
}
