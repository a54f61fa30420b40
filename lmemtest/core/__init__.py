"""What every part stands on: results and tables, words, checks of arguments, frames of any library, executors."""
