package org.millrace.operation;

/** An exception for an error of a library. It is the original failure, because only it contains the error's number. */
public interface LibraryFailure {}
