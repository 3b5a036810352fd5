package org.millrace.cli.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.cli.MappedProvider;
import org.millrace.cli.doctor.CheckResult.State;
import org.millrace.config.Configuration;
import org.millrace.cuda.CudaReport;
import org.millrace.file.ProcessIdentity;
import org.millrace.file.SharedDirectory;
import org.millrace.library.NativeLibrary;
import org.millrace.net.connection.ListeningPorts;
import org.millrace.net.plugin.TestNet;
import org.millrace.trace.ProcessTrace;

@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ChecksTest {

    @TempDir
    private Path directory;

    private CheckResult driver() {
        return GpuChecks.driver(directory.resolve("proc"), directory);
    }

    @Test
    void whatAJvmMeetsInAnotherProgram() throws IOException {
        Map<String, String> environment = Map.of("JAVA_TOOL_OPTIONS", "-XX:+UseG1GC", "_JAVA_OPTIONS", " ");
        Path jsig = directory.resolve("lib/libjsig.so");
        assertEquals(State.MISSING, MachineChecks.jvmInPrograms(directory, environment).state());
        Files.createDirectories(jsig.getParent());
        Files.createFile(jsig);
        CheckResult there = MachineChecks.jvmInPrograms(directory, environment);
        assertEquals(State.WORKS, there.state());
        assertTrue(there.summary().endsWith(jsig + "; started with JAVA_TOOL_OPTIONS=-XX:+UseG1GC, too"),
                there.summary());
    }

    @Test
    void theDriverIsMissingUnusableOrWorks() throws IOException {
        assertEquals(State.MISSING, driver().state());
        assertTrue(driver().summary().contains(directory.resolve("proc/version").toString()), driver().toString());

        Files.createDirectory(directory.resolve("proc"));
        Files.writeString(directory.resolve("proc/version"),
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 10:11:16 UTC 2025\nGCC "
                        + "version: 12\n");
        assertEquals(State.UNUSABLE, driver().state());
        assertTrue(driver().summary().contains("580.95.05") && driver().advice().toString().contains("--gpus all"),
                driver().toString());

        Files.createFile(directory.resolve("nvidiactl"));
        assertEquals(CheckResult.works("NVIDIA's driver 580.95.05"), driver());
    }

    @Test
    void theOpenDriverWritesItsVersionElsewhereInTheLine() throws IOException {
        Files.createDirectory(directory.resolve("proc"));
        Files.writeString(directory.resolve("proc/version"),
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (nixbld@)  \n");
        Files.createFile(directory.resolve("nvidiactl"));
        assertEquals(CheckResult.works("NVIDIA's driver 580.159.04"), driver());
    }

    @Test
    void portsOfRunningProcessesAreListed() throws IOException {
        ProcessTrace.open(SharedDirectory.usual(), false);
        Path traces = ProcessTrace.current().path().getParent();
        Configuration settings = Configuration.load(Map.of("MILLRACE_TRACE_DIRECTORY", traces.toString()));
        ServerSocketChannel server =
                ServerSocketChannel.open().bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        ListeningPorts.opened(server, "connections", "");
        String port = "127.0.0.1 port " + server.socket().getLocalPort() + " (connections) of pid "
                + ProcessHandle.current().pid();
        CheckResult open = MachineChecks.ports(settings);
        assertTrue(open.summary().contains(port), open.summary());
        ListeningPorts.close(server);
        assertTrue(!server.isOpen() && !MachineChecks.ports(settings).summary().contains(port));
        assertEquals("no process of this user listens",
                MachineChecks.ports(Configuration.load(Map.of("MILLRACE_TRACE_DIRECTORY", directory.toString())))
                        .summary());
    }

    @Test
    void gpusAreListedByTheDriver() throws IOException {
        CudaReport none =
                new CudaReport(new NativeLibrary.Report("CUDA runtime", Path.of("/l"), "13.0", null, false, List.of()),
                        null, List.of(), "no device. Do this");
        assertEquals(State.MISSING, gpus(none).state());
        assertTrue(gpus(none).summary().contains(directory.resolve("gpus").toString())
                && gpus(none).advice().contains("no device. Do this"), gpus(none).toString());
        for (String address : new String[] {"0000:0b:00.0", "0000:0a:00.0"}) {
            Path gpu = Files.createDirectories(directory.resolve("gpus").resolve(address));
            Files.writeString(gpu.resolve("information"), "Model: \t\t NVIDIA H200\nIRQ:   \t\t 1\n");
        }
        assertEquals(CheckResult
                .unusable("2 listed by the driver (NVIDIA H200 at 0000:0a:00.0, NVIDIA H200 at 0000:0b:00.0), but this "
                        + "process can use none", "no device. Do this"),
                gpus(none));
        assertEquals(List.of("the CUDA runtime cannot be loaded"), gpus(null).advice());
        CudaReport one = new CudaReport(none.library(), "13.0",
                List.of(new CudaReport.Device(0, "NVIDIA H200", 141L << 30, "0000:0b:00.0", "9.0")), null);
        assertEquals(
                CheckResult.works(
                        "1: 0 NVIDIA H200 (141.0 GiB, compute capability 9.0) at 0000:0b:00.0; the driver lists 2"),
                gpus(one));
    }

    private CheckResult gpus(CudaReport report) {
        return GpuChecks.gpus(directory, Optional.ofNullable(report));
    }

    private static CheckResult library(NativeLibrary.Report report) {
        return GpuChecks.library(Optional.empty(), () -> report);
    }

    @Test
    void aLibraryIsMissingUnusableOrWorks() {
        Path file = Path.of("/lib/libnccl.so.2");
        assertEquals(CheckResult.missing("NCCL was not found: looked for libnccl.so.2 in /a", "Install it, or set X"),
                library(new NativeLibrary.Report("NCCL", null, null,
                        "NCCL was not found: looked for libnccl.so.2 in /a. Install it, or set X", true, List.of())));
        assertEquals(CheckResult.unusable("X=/x is not a usable NCCL: invalid ELF header", "Correct it"),
                library(new NativeLibrary.Report("NCCL", null, null,
                        "X=/x is not a usable NCCL: invalid ELF header. Correct it", false, List.of())));
        assertEquals(CheckResult.unusable(file + ": ncclGetVersion failed"),
                library(new NativeLibrary.Report("NCCL", file, null, "ncclGetVersion failed", false, List.of())));
        assertEquals(CheckResult.works("2.28.9, " + file, "passed over, because it is broken: /b: bad"),
                library(new NativeLibrary.Report("NCCL", file, "2.28.9", null, false, List.of("/b: bad"))));
    }

    @Test
    void aLibraryThatDoesHarmIsNotLoaded() {
        CheckResult harm = CheckResult.unusable("harm");
        assertEquals(harm, GpuChecks.library(Optional.of(harm), () -> fail("loaded all the same")));
    }

    @Test
    void aNetworkPluginIsListedWithItsDevices() {
        TestNet plugin = TestNet.alone(10, ChecksTest.class).with("devices=2,recvs=8");
        CheckResult works = GpuChecks.netPlugin(plugin.library().toString());
        assertEquals(State.WORKS, works.state());
        assertEquals("TestNet, table v10", works.summary());
        assertEquals(List.of("device 0: test0, 100 Gbit/s, host and CUDA memory, 8 receives at once",
                "device 1: test1, 100 Gbit/s, host and CUDA memory, 8 receives at once"), works.advice());
        assertEquals(State.UNUSABLE, GpuChecks.netPlugin("/does/not/exist.so").state());
    }

    @Test
    void sharedMemoryIsMissingOrWorks() {
        assertEquals(State.MISSING, MachineChecks.sharedMemory(directory.resolve("none")).state());
        CheckResult here = MachineChecks.sharedMemory(directory);
        assertTrue(here.summary().contains(" free of "), here.toString());
    }

    @Test
    void processesAreShownOrHiddenOrUnknown() throws IOException {
        ProcessIdentity known = new ProcessIdentity(7, 8, 9);
        assertTrue(MachineChecks.processes(directory, known).summary().contains("hides"));
        Files.createFile(Files.createDirectory(directory.resolve("1")).resolve("stat"));
        assertEquals(List.of(), MachineChecks.processes(directory, known).advice());
        assertEquals(State.UNUSABLE, MachineChecks.processes(directory, new ProcessIdentity(7, 0, 0)).state());
    }

    @Test
    void theDirectoryForTemporaryFilesIsMissingOrWorks() {
        assertEquals(State.WORKS, MachineChecks.temporaryFiles(directory).state());
        assertEquals(directory.resolve("none") + " is not there",
                MachineChecks.temporaryFiles(directory.resolve("none")).summary());
    }

    @Test
    void whatLinuxSaysIsFound() {
        for (Check check : new Check[] {new Check("Java", MachineChecks::java),
                new Check("kernel", MachineChecks::kernel), new Check("cores", MachineChecks::cores),
                new Check("memory", MachineChecks::memory),
                new Check("limits", () -> MachineChecks.limits(Path.of("/proc/self/limits")))}) {
            assertEquals(State.WORKS, check.look().get().state(), check.subject() + ": " + check.look().get());
        }
    }

    @Test
    void aDeviceIsTriedOut() {
        assertEquals(State.WORKS, DoctorCommand.tryOut("mapped", Map.of()).state());
        CheckResult wrong = DoctorCommand.tryOut("mapped", Map.of("MILLRACE_FAULT", "wrong"));
        assertEquals(CheckResult.unusable("an all-reduce of two ranks gave 2 wrong elements"), wrong);
        CheckResult failing = DoctorCommand.tryOut("mapped", Map.of("MILLRACE_FAULT", "throw"));
        assertTrue(failing.summary().contains("rank 1: the planted failure"), failing.toString());
        CheckResult absent = DoctorCommand.tryOut("gpu", Map.of());
        assertTrue(absent.state() == State.UNUSABLE
                && absent.summary().contains("mapped (org.millrace.cli.MappedProvider)"), absent.toString());
    }

    @Test
    void aCheckThatFailsDoesNotHideTheOthers() {
        StringWriter text = new StringWriter();
        DoctorReport report = new DoctorReport(new PrintWriter(text, true), false, 80);
        report.add(new Check("broken", () -> {
            throw new UnsatisfiedLinkError("no such symbol");
        }));
        assertTrue(text.toString().matches("millrace .*\\Rbroken +UNUSABLE +the check failed: .*no\\s+such symbol\\R"),
                text.toString());
        assertEquals("broken", report.notWorking(Set.of("broken", "another")));
    }

    /**
     * If a feature is missing, the device's check reports the name without the reason, because the feature's own check
     * has reported the reason.
     */
    @Test
    void aDeviceThatLacksSomethingSaysWhatAndNotWhy() {
        MappedProvider mapped = new MappedProvider();
        assertEquals(CheckResult.missing("needs what does not work: GPUs, NCCL, see above"),
                GpuChecks.device(mapped, Map.of(), "GPUs, NCCL"));
        assertEquals(State.WORKS, GpuChecks.device(mapped, Map.of(), "").state());
    }

    @Test
    void whetherAProgramIsToldOfALostPeerIsASetting() {
        CheckResult told = MachineChecks.lostPeers(Configuration.ofPlugin(name -> null));
        assertEquals(State.WORKS, told.state());
        assertTrue(told.advice().toString().contains("ends after 5s"), told.toString());
        CheckResult untold = MachineChecks.lostPeers(
                Configuration.ofPlugin(Map.of("MILLRACE_ASYNC_ERROR", "0", "MILLRACE_ON_LOSS", "report")::get));
        assertEquals(State.MISSING, untold.state());
        assertTrue(untold.summary().endsWith("a program under the plugin is told by its next enqueue"),
                untold.toString());
    }

    private void net(String name, String mtu, String speed) throws IOException {
        Path one = Files.createDirectories(directory.resolve(name));
        Files.writeString(one.resolve("mtu"), mtu + "\n");
        Files.writeString(one.resolve("speed"), speed + "\n");
    }

    @Test
    void aFastInterfaceNeedsJumboFrames() throws IOException {
        net("eth0", "1500", "25000");
        net("eth1", "9000", "100000");
        net("eth2", "1500", "1000");
        net("veth", "1500", "-1");
        assertEquals(
                CheckResult.works(
                        "eth0 1500 (25000 Mbit/s), eth1 9000 (100000 Mbit/s), eth2 1500 (1000 Mbit/s), veth 1500",
                        "eth0 is fast, and packets of 1500 bytes cost throughput: ip link set eth0 mtu 9000 on all "
                                + "hosts, and as much on the switch"),
                MachineChecks.mtu(directory, List.of("eth0", "eth1", "eth2", "veth")));
        assertEquals(State.MISSING, MachineChecks.mtu(directory, List.of("none")).state());
    }

    @Test
    void defectiveReleasesOfNcclAreNamed() {
        assertTrue(GpuChecks.nccl(CheckResult.works("2.28.9, /l")).advice().getFirst().contains("vllm#52504"));
        for (String version : List.of("2.30.3", "2.30.4+cuda13.0")) {
            assertTrue(GpuChecks.nccl(CheckResult.works(version + ", /l", "x")).advice().get(1).contains("nccl#2156"));
        }
        for (String version : List.of("2.28.90", "2.30.7", "2.30.30")) {
            assertEquals(List.of(), GpuChecks.nccl(CheckResult.works(version + ", /l")).advice());
        }
        assertEquals(CheckResult.unusable("2.28.9"), GpuChecks.nccl(CheckResult.unusable("2.28.9")));
    }

    @Test
    void staleVariablesOfAnOuterLauncherAreNamed() {
        assertEquals(CheckResult.works("no variables of a launcher are set"),
                MachineChecks.launcher(Map.of("SLURM_JOB_ID", "7", "RANK", "3")));
        assertEquals(CheckResult.works("a rank would join by RANK=3 and WORLD_SIZE=8"), MachineChecks
                .launcher(Map.of("RANK", "3", "WORLD_SIZE", "8", "SLURM_PROCID", "3", "SLURM_NTASKS", "8")));
        assertEquals(
                CheckResult.works("a rank would join by RANK=0 and WORLD_SIZE=1",
                        "OMPI_COMM_WORLD_RANK=3 and OMPI_COMM_WORLD_SIZE=8 differ and are not used. If their launcher "
                                + "starts the ranks, the others are stale: unset RANK WORLD_SIZE",
                        "SLURM_PROCID=3 and SLURM_NTASKS=8 differ and are not used. If their launcher starts the "
                                + "ranks, the others are stale: unset RANK WORLD_SIZE"),
                MachineChecks.launcher(Map.of("RANK", "0", "WORLD_SIZE", "1", "OMPI_COMM_WORLD_RANK", "3",
                        "OMPI_COMM_WORLD_SIZE", "8", "SLURM_PROCID", "3", "SLURM_NTASKS", "8")));
    }

    private CheckResult limits(String files, String most) throws IOException {
        Path file = directory.resolve("limits");
        Files.writeString(file, "Max open files            " + files + "        " + most + "      files     \n"
                + "Max locked memory         unlimited            unlimited            bytes     \n");
        return MachineChecks.limits(file);
    }

    @Test
    void tooFewOpenFilesAreNamedWithTheRemedy() throws IOException {
        assertEquals(List.of(), limits("65536", "65536").advice());
        assertEquals(List.of("many ranks or streams need more open files: ulimit -n 65536"),
                limits("1024", "524288").advice());
        assertEquals(limits("256", "unlimited").advice(), limits("1024", "524288").advice());
        assertTrue(limits("1024", "4096").advice().getFirst().contains("the hard limit is 4096; raise nofile in"));
    }

    @Test
    void amountsAreRounded() {
        assertEquals("0 B", MachineChecks.amount(0));
        assertEquals("1023 B", MachineChecks.amount(1023));
        assertEquals("1.5 KiB", MachineChecks.amount(1536));
        assertEquals("23.5 GiB", MachineChecks.amount(25_276_514_304L));
    }
}
