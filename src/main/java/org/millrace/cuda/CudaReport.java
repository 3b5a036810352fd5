package org.millrace.cuda;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.library.NativeLibrary;

/**
 * What this machine has of CUDA, for {@code millrace doctor}. Probing takes no GPU into use.
 *
 * @param driver        the newest CUDA that the driver serves, as people write it: {@code "13.0"}; null without a
 *                      driver
 * @param deviceProblem why there are none; null if there are
 */
public record CudaReport(NativeLibrary.Report library, @Nullable String driver, List<Device> devices,
        @Nullable String deviceProblem) {

    /**
     * A GPU.
     *
     * @param computeCapability for instance {@code "9.0"}
     */
    public record Device(int index, String name, long memory, String pciBusId, String computeCapability) {
    }

    /** Copies the list. */
    public CudaReport {
        devices = List.copyOf(devices);
    }

    /**
     * Looks.
     *
     * @param path the value of {@code MILLRACE_CUDART_LIBRARY}, or null; see {@link CudaRuntime#load(String)}
     * @return what was found; never throws for what was not
     */
    public static CudaReport probe(@Nullable String path) {
        CudaRuntime runtime;
        try {
            runtime = CudaRuntime.load(path);
        } catch (MillraceException unusable) {
            return new CudaReport(NativeLibrary.Report.unusable("CUDA runtime", unusable), null, List.of(),
                    "the CUDA runtime is missing");
        }
        String version = null;
        String problem = null;
        String driver = null;
        List<Device> devices = new ArrayList<>();
        String deviceProblem = null;
        try {
            version = CudaRuntime.versionText(runtime.version());
            int served = runtime.driverVersion();
            driver = served == 0 ? null : CudaRuntime.versionText(served);
        } catch (CudaException broken) {
            problem = broken.getMessage();
        }
        try {
            for (CudaDevice device : runtime.devices()) {
                devices.add(new Device(device.index(), device.name(), device.totalMemory(), device.pciBusId(),
                        device.computeCapability()));
            }
        } catch (CudaException none) {
            deviceProblem = none.getMessage();
        }
        NativeLibrary library = runtime.library();
        return new CudaReport(
                new NativeLibrary.Report("CUDA runtime", library.path(), version, problem, false, library.setAside()),
                driver, devices, deviceProblem);
    }
}
