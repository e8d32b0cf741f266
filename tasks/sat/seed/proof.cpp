#include "proof.h"

#include <sstream>
#include <stdexcept>

Proof::Proof(const std::string& path) : enabled_(!path.empty()) {
    if (!enabled_) {
        return;
    }
    file_.open(path);
    if (!file_) {
        throw std::runtime_error("the proof cannot be written to " + path);
    }
}

void Proof::add(const Literals& clause) {
    write("", clause);
}

void Proof::remove(const Literals& clause) {
    write("d ", clause);
}

void Proof::add_empty() {
    write("", Literals());
}

void Proof::close() {
    if (enabled_) {
        file_.close();
    }
}

void Proof::write(const std::string& prefix, const Literals& clause) {
    if (!enabled_) {
        return;
    }
    std::ostringstream line;
    line << prefix;
    for (Literal literal : clause) {
        line << literal << " ";
    }
    line << "0\n";
    file_ << line.str();
    ++lines_;
}
