package org.millrace.cli.doctor;

import java.util.Map;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Setting;
import org.millrace.config.Settings;
import org.millrace.cuda.CudaReport;
import org.millrace.nccl.NcclLibrary;

/** A native library that doctor loads: in a process of its own first, because a damaged one can end the process. */
enum Probe {
    /** libnccl. */
    NCCL(Settings.NCCL_LIBRARY),
    /** libcudart, and with it driver and GPUs. */
    CUDA(Settings.CUDART_LIBRARY);

    private final Setting<? extends java.util.Optional<java.nio.file.Path>> setting;

    Probe(Setting<? extends java.util.Optional<java.nio.file.Path>> setting) {
        this.setting = setting;
    }

    /** The name of the setting that points at the library. */
    String setting() {
        return setting.name();
    }

    /** Where the settings say it is; null if they do not, or if they are refused, which doctor says elsewhere. */
    String path(Map<String, String> overrides) {
        try {
            return Configuration.load(overrides).get(setting).map(Object::toString).orElse(null);
        } catch (ConfigurationException refused) {
            return null;
        }
    }

    /** Loads it, asks it everything, and forgets the answers. */
    void run(Map<String, String> overrides) {
        switch (this) {
            case NCCL -> NcclLibrary.probe(path(overrides));
            case CUDA -> CudaReport.probe(path(overrides));
        }
    }
}
