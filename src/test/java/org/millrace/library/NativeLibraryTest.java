package org.millrace.library;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.millrace.MillraceException;
import org.millrace.config.Setting;
import org.millrace.config.Settings;
import org.millrace.config.ValueTypes;
import org.millrace.cuda.NativeBuild;
import org.millrace.cuda.OwnClassLoader;

/**
 * Native libraries that are missing, broken, of the wrong kind, or bound twice. The tests check the message about each
 * library, and the choice among several libraries.
 */
@ExtendWith(OwnClassLoader.class)
class NativeLibraryTest {

    private static final String NAME = "libmillraceprobe.so.2";

    private enum Function implements NativeLibrary.NativeFunction {
        ESSENTIAL("millrace_essential", null), NEWER("millrace_newer", "2.28");

        private final Export export;

        Function(String symbol, String since) {
            export = new Export(symbol, since);
        }

        @Override
        public Export export() {
            return export;
        }
    }

    /** Number in the title of a library. Each test uses its own title, because a bound library stays bound. */
    private static int titles;

    private Path directory;
    private String title;

    @BeforeEach
    void prepare() {
        directory = NativeBuild.directory();
        title = "Probe " + ++titles;
        System.clearProperty("millrace.probe.library");
    }

    @AfterEach
    void forget() {
        System.clearProperty("millrace.probe.library");
    }

    private NativeLibrary.Search search(Path... directories) {
        return new NativeLibrary.Search(title,
                new Setting<>(Settings.Part.DEVICE, "MILLRACE_PROBE_LIBRARY", ValueTypes.paths(), directory,
                        "a library", List.of(), false),
                List.of(NAME), List.of(directories), List.of(Function.values()), "Install it (pip install probe)");
    }

    private String refusal(String explicit, Path... directories) {
        return assertThrows(MillraceException.class, () -> NativeLibrary.load(search(directories), explicit))
                .getMessage();
    }

    private Path library(Path target, String source) throws IOException {
        return NativeBuild.library(target, Files.writeString(target.resolveSibling("source.c"), source));
    }

    private Path good(Path target) throws IOException {
        return library(target, "int millrace_essential(void) { return 1; }\n").toRealPath();
    }

    private Path subdirectory(String name) throws IOException {
        return Files.createDirectories(directory.resolve(name));
    }

    @Test
    void aMissingLibraryIsOneMessageWithEveryPlaceAndTheRemedy() {
        String message = refusal(null, directory);
        assertTrue(message.startsWith(
                title + " was not found: looked for " + NAME + " through the dynamic loader (LD_LIBRARY_PATH is "),
                message);
        assertTrue(message.contains("and in " + directory + "."), message);
        assertTrue(message.endsWith("Install it (pip install probe), or set MILLRACE_PROBE_LIBRARY=/path/to/" + NAME
                + " (or -Dmillrace.probe.library=...)"), message);
    }

    @Test
    void aWrongSettingNamesItselfAndTheFile() throws IOException {
        Path none = directory.resolve("none.so");
        assertTrue(refusal(none.toString())
                .startsWith("MILLRACE_PROBE_LIBRARY names " + none + " as " + title + ", but there is no such file."));
        System.setProperty("millrace.probe.library", none.toString());
        assertTrue(refusal(null).startsWith("-Dmillrace.probe.library names "));
        // If the setting names a file, no directory is searched, so the usable library in the directory is not bound.
        good(directory.resolve(NAME));
        assertTrue(refusal(null, directory).contains("no such file"));
        String folder = refusal(subdirectory("empty").toString());
        assertTrue(folder.contains("is a folder without " + NAME), folder);
        String name = refusal("libmillracenone.so");
        assertTrue(name.startsWith("MILLRACE_PROBE_LIBRARY=libmillracenone.so is not a usable " + title
                + ": libmillracenone.so: cannot open"), name);
    }

    @Test
    void aTextFileIsDistinguishedFromALibrary() throws IOException {
        Path text = Files.writeString(directory.resolve(NAME), "version https://git-lfs.github.com/spec/v1\n");
        String message = refusal(text.toString());
        assertTrue(message.contains(text + ": file too short") || message.contains(text + ": invalid ELF header"),
                message);
        assertTrue(message.contains("MILLRACE_PROBE_LIBRARY=" + text + " is not a usable " + title), message);
    }

    @Test
    void aLibraryForAnotherProcessorIsRefused() throws IOException {
        Path file = good(directory.resolve(NAME));
        byte[] bytes = Files.readAllBytes(file);
        bytes[18] = (byte) (bytes[18] == 8 ? 9 : 8); // the field e_machine: another processor than this one
        Files.write(file, bytes);
        assertTrue(refusal(file.toString()).contains(file + ": "), refusal(file.toString()));
    }

    @Test
    void aLibraryWithoutItsSymbolsIsNotTaken() throws IOException {
        Path file = library(directory.resolve(NAME), "int something_else(void) { return 1; }\n");
        String message = refusal(file.toString());
        assertTrue(message.contains(file + ": has no millrace_essential, so it is not " + title + ", or a damaged one"),
                message);
    }

    @Test
    void aMissingDependencyIsNamed() throws IOException {
        Path dependency = library(directory.resolve("libmillracedependency.so"), "int needed(void) { return 1; }\n");
        Path file = directory.resolve(NAME);
        NativeBuild.library(file,
                Files.writeString(directory.resolve("source.c"),
                        "int needed(void); int millrace_essential(void) { return needed(); }\n"),
                "-L", directory.toString(), "-Wl,--no-as-needed", "-lmillracedependency");
        Files.delete(dependency);
        String message = refusal(file.toString());
        assertTrue(message.contains("libmillracedependency.so: cannot open shared object file"), message);
    }

    @Test
    void anUndefinedSymbolIsReportedWhenLoadingAndNotWhenCalling() throws IOException {
        Path file = library(directory.resolve(NAME),
                "int never_defined(void); int millrace_essential(void) { return never_defined(); }\n");
        assertTrue(refusal(file.toString()).contains("undefined symbol: never_defined"));
    }

    @Test
    void brokenCandidatesAreSetAsideForTheFirstGoodOne() throws IOException {
        Path text = Files.writeString(subdirectory("a").resolve(NAME), "x".repeat(100));
        Path other = library(subdirectory("b").resolve(NAME), "int something_else(void) { return 1; }\n");
        Path good = good(subdirectory("c").resolve(NAME));
        good(subdirectory("d").resolve(NAME));
        NativeLibrary library = NativeLibrary.load(
                search(directory.resolve("a"), directory.resolve("b"), directory.resolve("c"), directory.resolve("d")),
                null);
        assertEquals(good, library.path());
        assertEquals(2, library.setAside().size(), library.setAside().toString());
        assertTrue(library.setAside().get(0).startsWith(text + ": invalid ELF header"), library.setAside().toString());
        assertTrue(library.setAside().get(1).startsWith(other + ": has no millrace_essential"),
                library.setAside().toString());
    }

    @Test
    void onlyBrokenCandidatesAreAllReported() throws IOException {
        Path text = Files.writeString(subdirectory("a").resolve(NAME), "x".repeat(100));
        String message = refusal(null, directory.resolve("a"));
        assertTrue(message.startsWith(
                title + " could not be loaded: " + text + ": invalid ELF header. No other was found: looked for "),
                message);
    }

    @Test
    void aBoundLibraryStays() throws IOException {
        Path good = good(subdirectory("a").resolve(NAME));
        Path second = good(subdirectory("b").resolve(NAME));
        NativeLibrary library = NativeLibrary.load(search(), directory.resolve("a").toString());
        assertEquals(good, library.path());
        assertSame(library, NativeLibrary.load(search(), null));
        assertSame(library, NativeLibrary.load(search(), good.toString()));
        String message = refusal(second.toString());
        assertTrue(message.contains("is already loaded from " + good + "; " + second + " cannot be loaded beside it"),
                message);
    }

    @Test
    void aFunctionThatIsTooNewIsNamedWithTheReleaseThatHasIt() throws IOException {
        NativeLibrary library = NativeLibrary.load(search(), good(directory.resolve(NAME)).toString());
        assertTrue(library.has(Function.ESSENTIAL));
        assertTrue(!library.has(Function.NEWER));
        assertTrue(library.find("millrace_essential").isPresent());
        assertTrue(library.find("millrace_newer").isEmpty());
        String message = library.lacks(Function.NEWER, "2.18.3").getMessage();
        assertEquals("millrace_newer is not in the loaded " + title + " 2.18.3 (" + library.path() + "): " + title
                + " 2.28 and later have it. To load another one, set MILLRACE_PROBE_LIBRARY=/path/to/" + NAME
                + " (or -Dmillrace.probe.library=...)", message);
    }
}
