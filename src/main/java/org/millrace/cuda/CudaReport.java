package org.millrace.cuda;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.library.NativeLibrary;

/**
 * The CUDA installation of this machine, for {@code millrace doctor}. The examination does not initialize a GPU.
 *
 * @param driver        newest CUDA release that the driver supports, as text such as {@code "13.0"}; null without a
 *                      driver
 * @param deviceProblem reason why no device was found; null if devices were found
 */
public record CudaReport(NativeLibrary.Report library, @Nullable String driver, List<Device> devices,
        @Nullable String deviceProblem) {

    /**
     * A GPU that was found.
     *
     * @param computeCapability generation of the GPU's instruction set, for instance {@code "9.0"}
     */
    public record Device(int index, String name, long memory, String pciBusId, String computeCapability) {
    }

    /** Copies the list of devices. */
    public CudaReport {
        devices = List.copyOf(devices);
    }

    /**
     * Examines this machine.
     *
     * @param path the value of {@code MILLRACE_CUDART_LIBRARY}, or null; see {@link CudaRuntime#load(String)}
     * @return the report. A missing driver, GPU or library is stated in the report and causes no exception
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
