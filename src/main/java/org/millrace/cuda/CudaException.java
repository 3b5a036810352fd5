package org.millrace.cuda;

import org.millrace.MillraceException;
import org.millrace.ffi.cudart.cudart_h;
import org.millrace.operation.LibraryFailure;

/**
 * A failed call of the CUDA runtime. The message states the function, the error's name, number and text, and a remedy
 * if one is known.
 */
public final class CudaException extends MillraceException implements LibraryFailure {

    private static final long serialVersionUID = 1L;

    private final String call;
    private final int code;

    /**
     * @param call   name of the function
     * @param code   error number
     * @param name   CUDA's name of the error
     * @param text   CUDA's description of the error
     * @param detail further information, such as a compiler's log; may be empty
     */
    CudaException(String call, int code, String name, String text, String detail) {
        super(call + " failed: " + name + " (" + code + "): " + text + "."
                + (detail.isBlank() ? "" : " " + detail.strip()) + (advice(code).isEmpty() ? "" : " " + advice(code)));
        this.call = call;
        this.code = code;
    }

    /** {@return the name of the function that failed, for instance {@code "cudaMalloc"}} */
    public String call() {
        return call;
    }

    /** {@return the error number: a value of {@code cudaError_t}} */
    public int code() {
        return code;
    }

    /** Returns a remedy for an error that users often meet. Empty if no known remedy adds to CUDA's own description. */
    private static String advice(int code) {
        if (code == cudart_h.cudaErrorInsufficientDriver()) {
            return "There is no NVIDIA driver on this machine, or it is older than this CUDA runtime (nvidia-smi"
                    + " shows the newest CUDA that it serves). Install"
                    + " a newer driver, or load an older runtime with MILLRACE_CUDART_LIBRARY; without a GPU, use the"
                    + " emulated device";
        } else if (code == cudart_h.cudaErrorNoDevice()) {
            return "The driver shows this process no GPU: see whether nvidia-smi lists one, whether"
                    + " CUDA_VISIBLE_DEVICES hides it, and whether the container"
                    + " was given it (docker run --gpus all)";
        } else if (code == cudart_h.cudaErrorMemoryAllocation()) {
            return "Free some memory (nvidia-smi shows the memory use of each process), or ask for less; pinned host"
                    + " memory is bounded by the machine's and" + " the container's memory limit";
        } else if (code == cudart_h.cudaErrorDevicesUnavailable()) {
            return "Another process holds the GPU exclusively, or it is in prohibited mode: see nvidia-smi -q -d"
                    + " COMPUTE";
        } else if (code == cudart_h.cudaErrorInvalidDevice()) {
            return "Devices are numbered from 0 among those that CUDA_VISIBLE_DEVICES leaves visible";
        } else if (code == cudart_h.cudaErrorNoKernelImageForDevice()
                || code == cudart_h.cudaErrorUnsupportedPtxVersion()) {
            return "The image was built for other GPUs or by a newer toolkit than the driver knows: build it for this"
                    + " GPU's compute capability, or take a newer" + " driver";
        } else if (code == cudart_h.cudaErrorIllegalAddress() || code == cudart_h.cudaErrorLaunchFailure()) {
            return "Device code touched memory it may not. The process can no longer use the GPU; run it under"
                    + " compute-sanitizer to find where";
        } else if (code == cudart_h.cudaErrorSystemNotReady()) {
            return "On machines with NVSwitch the fabric manager must run: systemctl status nvidia-fabricmanager";
        } else if (code == cudart_h.cudaErrorSystemDriverMismatch()) {
            return "The driver's kernel module and its libcuda.so.1 are of different versions: restart after a driver"
                    + " update," + " and see which libcuda.so.1 is loaded";
        } else if (code == cudart_h.cudaErrorStreamCaptureUnsupported()) {
            return "The call is not allowed while a stream of this process is being captured: end the capture first,"
                    + " or capture in relaxed mode";
        }
        return "";
    }
}
