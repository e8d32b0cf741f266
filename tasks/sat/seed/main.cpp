// solver PROOF < FORMULA: decide whether a formula in the DIMACS format has a solution.
//
// Prints the answer and the solution; if there is none, the file PROOF holds a proof of that. Counts go to stderr.

#include <exception>
#include <iostream>
#include <string>

#include "formula.h"
#include "options.h"
#include "output.h"
#include "parser.h"
#include "proof.h"
#include "solver.h"

namespace {

const int EXIT_WRONG_USE = 2;
const int EXIT_FAILED = 1;

// A wrong model would be a fault of the solver: better no answer than that.
Answer checked(const Formula& formula, Answer answer, const std::vector<bool>& model) {
    if (answer == Answer::satisfiable && !formula.is_satisfied_by(model)) {
        throw std::logic_error("the model does not satisfy the formula");
    }
    return answer;
}

int run(const std::string& proof_path) {
    Parser parser(std::cin);
    Formula formula = parser.parse();
    write_comment(std::cerr, std::to_string(formula.variables()) + " variables, " + std::to_string(formula.size()) +
                                 " clauses, the longest with " + std::to_string(formula.longest_clause()));
    Options options;
    Proof proof(proof_path);
    Solver solver(formula, options, proof);
    Answer answer = checked(formula, solver.solve(), solver.model());
    proof.close();
    write_answer(std::cout, answer, solver.model());
    solver.statistics().write(std::cerr);
    return exit_code_of(answer);
}

}  // namespace

int main(int count, char** arguments) {
    if (count > 2) {
        std::cerr << "expected at most one argument, the path of the proof\n";
        return EXIT_WRONG_USE;
    }
    try {
        return run(count == 2 ? arguments[1] : "");
    } catch (const std::exception& error) {
        std::cerr << "failed: " << error.what() << "\n";
        return EXIT_FAILED;
    }
}
