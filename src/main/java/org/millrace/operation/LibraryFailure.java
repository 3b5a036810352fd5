package org.millrace.operation;

/**
 * An exception for an error of a library. In a chain of causes, this exception counts as the original failure, because
 * only this exception contains the error's number.
 */
public interface LibraryFailure {}
