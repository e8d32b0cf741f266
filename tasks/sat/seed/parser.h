// Reads formulas in the DIMACS format.

#pragma once

#include <istream>
#include <stdexcept>
#include <string>

#include "formula.h"

// Raised for a text that is no formula; says in which line.
class ParseError : public std::runtime_error {
  public:
    ParseError(int line, const std::string& problem);
};

class Parser {
  public:
    explicit Parser(std::istream& input);

    // Read the whole input. Throws ParseError.
    Formula parse();

  private:
    bool next_line();
    void read_header();
    void read_clauses(Formula& formula);
    void take_word(const std::string& word, Formula& formula);
    [[noreturn]] void fail(const std::string& problem) const;

    std::istream& input_;
    std::string line_;
    int line_number_ = 0;
    int declared_variables_ = 0;
    int declared_clauses_ = 0;
    Literals open_clause_;
};
