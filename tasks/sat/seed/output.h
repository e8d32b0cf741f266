// Prints answers in the form that competitions of solvers use.

#pragma once

#include <ostream>
#include <vector>

#include "solver.h"

// The exit code that stands for an answer: 10 if there is a solution, 20 if there is none, 0 if that is not clear.
int exit_code_of(Answer answer);

// Print the line with the answer, and the values of the variables if there are any.
void write_answer(std::ostream& output, Answer answer, const std::vector<bool>& model);

// Print a message as a comment.
void write_comment(std::ostream& output, const std::string& message);
