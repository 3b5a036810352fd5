package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.CommunicatorListener;
import org.millrace.MillraceException;
import org.millrace.bootstrap.DecisionPlace.Directory;
import org.millrace.config.Configuration;
import org.millrace.file.User;

class DecisionPlaceTest {

    private static final int OTHER_USER = 12_345;

    @TempDir
    Path directory;

    private void assertRefused(Path place, String why) {
        String said = assertThrows(MillraceException.class, () -> new Directory(place, true).key()).getMessage();
        assertTrue(said.startsWith("the ranks cannot decide in " + place + " which of them continue: "), said);
        assertTrue(said.contains(why), said);
        assertTrue(said.endsWith("(MILLRACE_DECISION_DIR)"), said);
        assertEquals("", new Directory(place, false).key());
    }

    private String own() {
        return "millrace-decisions-" + User.text(User.ID);
    }

    @Test
    void aDirectoryWithoutUseIsRefusedEarly() {
        assertRefused(directory.resolve("missing"), "NoSuchFile");
        assertRefused(Path.of("/proc/self"), "/proc/self/.millrace-");
    }

    @Test
    void aDirectoryInWhichAllUsersCanDeleteIsRefused() throws IOException {
        Files.setAttribute(directory, "unix:mode", 0777);
        assertRefused(directory,
                "other users can delete files in it: its owner is user " + User.text(User.ID) + ", its mode 777");
        Files.setAttribute(directory, "unix:mode", 01777);
        assertFalse(new Directory(directory, true).key().isEmpty());
    }

    @Test
    @Tag("root")
    void aDirectoryOfAnotherUserIsRefused() throws IOException {
        assumeTrue(User.ID == 0, "only root can make directories for others");
        Path other = Files.createDirectory(directory.resolve("other"));
        Files.setAttribute(other, "unix:uid", OTHER_USER);
        assertRefused(other, "its owner is user " + OTHER_USER);
        Path link = Files.createSymbolicLink(directory.resolve("link"), other);
        assertRefused(link, "its owner is user " + OTHER_USER);
    }

    @Test
    void aDirectoryOfRootIsRefusedWithoutWriteAccess() {
        Path usr = Path.of("/usr");
        assumeFalse(Files.isWritable(usr), "this user can write in " + usr);
        assertRefused(usr, usr.toString());
    }

    /**
     * Another user may be the first to create a directory with the private directory's name. In this test, a link
     * imitates the other user's directory.
     */
    @Test
    void anotherPrivateDirectoryIsRefusedEarly() throws IOException {
        Files.createSymbolicLink(directory.resolve(own()), Files.createDirectory(directory.resolve("elsewhere")));
        assertRefused(directory, own() + " is not a directory of this user");
    }

    /** If the check did not create the private directory, another user could create it after the check. */
    @Test
    void theCheckOfASharedDirectoryCreatesThePrivateDirectory() throws IOException {
        Files.setAttribute(directory, "unix:mode", 01777);
        assertFalse(new Directory(directory, true).key().isEmpty());
        assertTrue(Files.isDirectory(directory.resolve(own()), LinkOption.NOFOLLOW_LINKS));
    }

    /**
     * If a rank cannot use the directory in MILLRACE_RUN_DIR, a majority decides. This directory may therefore be
     * missing.
     */
    @Test
    void onlyTheUsersDirectoryIsRequired() {
        Path missing = directory.resolve("missing");
        assertEquals(new Directory(missing, false), place(Map.of("MILLRACE_RUN_DIR", missing.toString())));
        assertEquals(new Directory(directory, true),
                place(Map.of("MILLRACE_RUN_DIR", missing.toString(), "MILLRACE_DECISION_DIR", directory.toString())));
    }

    private static @Nullable Directory place(Map<String, String> environment) {
        return JoinOptions
                .of(Configuration.load(environment, new Properties(), Map.of()), CommunicatorListener.STANDARD_ERROR)
                .place();
    }

    @Test
    void aCheckLeavesNoFile() throws IOException {
        new Directory(directory, true).key();
        try (Stream<Path> files = Files.list(directory)) {
            assertEquals(0, files.count());
        }
    }

    @Test
    void theFirstProposalIsTheDecisionInAPrivateDirectory() throws IOException {
        DecisionPlace place = new DecisionPlace(directory, "group");
        assertFalse(place.isDecided(0));
        assertArrayEquals(new byte[] {1}, place.decide(0, new byte[] {1}));
        assertArrayEquals(new byte[] {1}, place.decide(0, new byte[] {2}));
        assertTrue(place.isDecided(0));
        assertEquals("rwx------",
                PosixFilePermissions.toString(Files.getPosixFilePermissions(directory.resolve(own()))));
    }

    @Test
    void aLinkInsteadOfThePrivateDirectoryIsRefused() throws IOException {
        Files.createSymbolicLink(directory.resolve(own()), Files.createDirectory(directory.resolve("elsewhere")));
        String said = assertThrows(MillraceException.class,
                () -> new DecisionPlace(directory, "group").decide(0, new byte[] {1})).getMessage();
        assertTrue(said.contains(own() + " is not a directory of this user"), said);
    }
}
