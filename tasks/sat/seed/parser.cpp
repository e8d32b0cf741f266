#include "parser.h"

#include <sstream>

ParseError::ParseError(int line, const std::string& problem)
    : std::runtime_error("line " + std::to_string(line) + ": " + problem) {}

Parser::Parser(std::istream& input) : input_(input) {}

Formula Parser::parse() {
    read_header();
    Formula formula(declared_variables_);
    read_clauses(formula);
    if (!open_clause_.empty()) {
        fail("the last clause has no 0 at its end");
    }
    if (formula.size() != declared_clauses_) {
        fail("expected " + std::to_string(declared_clauses_) + " clauses, found " + std::to_string(formula.size()));
    }
    return formula;
}

// Go to the next line that is neither empty nor a comment. Returns false at the end of the input.
bool Parser::next_line() {
    while (std::getline(input_, line_)) {
        ++line_number_;
        std::istringstream words(line_);
        std::string first;
        if (words >> first && first != "c") {
            return true;
        }
    }
    return false;
}

void Parser::read_header() {
    if (!next_line()) {
        fail("expected a line `p cnf VARIABLES CLAUSES`, found the end");
    }
    std::istringstream words(line_);
    std::string p, format;
    if (!(words >> p >> format >> declared_variables_ >> declared_clauses_) || p != "p" || format != "cnf") {
        fail("expected a line `p cnf VARIABLES CLAUSES`, found `" + line_ + "`");
    }
    if (declared_variables_ < 0 || declared_clauses_ < 0) {
        fail("expected numbers from 0 on in the header");
    }
}

void Parser::read_clauses(Formula& formula) {
    while (next_line()) {
        std::istringstream words(line_);
        std::string word;
        while (words >> word) {
            take_word(word, formula);
        }
    }
}

void Parser::take_word(const std::string& word, Formula& formula) {
    int value = 0;
    try {
        std::size_t used = 0;
        value = std::stoi(word, &used);
        if (used != word.size()) {
            fail("expected a number, found `" + word + "`");
        }
    } catch (const std::logic_error&) {
        fail("expected a number, found `" + word + "`");
    }
    if (value == 0) {
        formula.add(open_clause_);
        open_clause_.clear();
        return;
    }
    if (variable_of(value) > declared_variables_) {
        fail("variable " + std::to_string(variable_of(value)) + " is above the number in the header");
    }
    open_clause_.push_back(value);
}

void Parser::fail(const std::string& problem) const {
    throw ParseError(line_number_, problem);
}
